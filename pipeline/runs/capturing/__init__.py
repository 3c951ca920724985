"""Reading the log of a run, and what becomes of its rows, until they are segments in files."""
