"""Step time as a function of bandwidth: the time expression and the training loops."""
