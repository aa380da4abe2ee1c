"""What every reader of files uses: documents with places, faults, tables, prices, rules."""
