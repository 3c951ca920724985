"""Online schema changes, by the tools themselves and by their statements, under writers."""
