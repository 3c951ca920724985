"""Capturing: the log is read from a start to an end and its rows are written to segments."""
