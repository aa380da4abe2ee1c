"""One renderer per medium."""
