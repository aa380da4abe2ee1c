"""The command line: thin calls of the same functions that the Python API has."""
