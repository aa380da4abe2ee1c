"""Results for people and programs: JSON objects and terminal tables."""
