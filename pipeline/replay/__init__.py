"""Decides what a replay of a span of the past is about: its batches, and the wrong rows
of a mirror.

Not here: reading and writing (`pipeline.run.replay`).
"""
