"""Readers and writers of other tools' files."""
