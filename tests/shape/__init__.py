"""What a mirror shows of its table, judged by a second implementation that goes row by row."""
