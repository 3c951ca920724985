"""Character sets: bytes of the log as text, and text that several byte strings mean."""
