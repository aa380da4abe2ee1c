"""What reports say of designs on their links."""
