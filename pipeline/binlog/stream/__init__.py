"""From a stream of bytes to events in the ring: the compiled loop, its rules and its formats."""
