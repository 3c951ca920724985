"""The registration of mirrors in a catalog."""
