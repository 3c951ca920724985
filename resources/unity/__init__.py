"""Unity Catalog as a catalog of mirrors (the Delta tables with the current rows)."""
