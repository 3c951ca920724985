"""Table maps, and the decoding of row events into row images as Arrow columns."""
