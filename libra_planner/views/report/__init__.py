"""The procurement document: its sections and charts."""
