"""The cockpit's six screens."""
