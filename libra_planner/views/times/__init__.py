"""Times of parts of a step, and what they are predicted with."""
