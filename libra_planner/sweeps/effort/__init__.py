"""How much work a sweep is, before it runs."""
