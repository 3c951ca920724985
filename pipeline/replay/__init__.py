"""Decisions about replaying a span of the past: its batches, and the wrong rows of a mirror.

Not here: reading and writing (`pipeline.run.replay`).
"""
