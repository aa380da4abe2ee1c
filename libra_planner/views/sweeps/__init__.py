"""Views of sweeps: answers as tables, figures, and the page."""
