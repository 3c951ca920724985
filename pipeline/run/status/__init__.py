"""Reports on a source, and records the orders that people give. Nothing here captures
or merges."""
