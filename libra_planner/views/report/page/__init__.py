"""The first page on paper: what stands above its signature."""
