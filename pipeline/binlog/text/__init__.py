"""Character sets and collations: bytes of the log as text."""
