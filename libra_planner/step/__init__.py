"""The time of a training step as a function of bandwidth."""
