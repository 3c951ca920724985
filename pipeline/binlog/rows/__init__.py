"""Table maps and row images: from row events to Arrow columns."""
