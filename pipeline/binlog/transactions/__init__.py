"""The transaction buffer and its parts: bytes of the log in, whole transactions out."""
