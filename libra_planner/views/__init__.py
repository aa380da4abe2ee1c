"""How results become visible: cells, tables and sections, a file per subject."""
