"""The compiled loop, which reads a stream of bytes into a ring buffer of row events,
and its rules and formats."""
