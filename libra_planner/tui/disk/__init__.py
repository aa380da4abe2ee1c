"""The open plan and its file on disk: reading, watching, saving."""
