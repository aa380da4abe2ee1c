"""What a fabric costs: prices per bandwidth, and options that can be bought."""
