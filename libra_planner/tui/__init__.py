"""The architect's cockpit: a terminal application over the same functions as the commands."""
