"""Unity Catalog as a catalog of mirrors."""
