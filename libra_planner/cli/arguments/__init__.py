"""What every command is called and takes; imports nothing that takes time."""
