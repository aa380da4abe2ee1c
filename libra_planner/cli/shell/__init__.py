"""What shells ask of the command line."""
