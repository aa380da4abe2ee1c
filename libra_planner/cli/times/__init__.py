"""Commands that predict times of parts of a step, and fit what they predict with."""
