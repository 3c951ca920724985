"""Registration of mirrors in a catalog: each table's entry, and the steps to get there. Pure."""
