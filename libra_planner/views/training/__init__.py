"""Views of what a plan trains: its step and its memory."""
