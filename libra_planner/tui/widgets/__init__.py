"""Parts that the cockpit's screens are made of."""
