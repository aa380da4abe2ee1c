"""Widgets of the cockpit."""
