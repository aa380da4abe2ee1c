"""Files that ``init`` writes."""
