"""Replays: a span of the log is captured again, replaces changelog files, and corrects
mirrors."""
