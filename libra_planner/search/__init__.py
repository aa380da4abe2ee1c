"""The best way to train a model on a fabric: all strategies as arrays, cut by bounds, proven."""
