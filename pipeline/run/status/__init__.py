"""Reports on a source, plans its next run, and records the start that a person chose.
Nothing here captures or merges."""
