"""Unity Catalog: mirrors registered there, by its REST interface."""
