"""A span replayed: read again, put in the place of what was there, merged into mirrors."""
