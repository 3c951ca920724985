"""Reports on a source, and the orders that people give; nothing here captures or merges."""
