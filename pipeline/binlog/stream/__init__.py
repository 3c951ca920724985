"""The stream of bytes, event by event, into the ring: the compiled loop, and what it goes by."""
