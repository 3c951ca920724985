"""Spans of the past, repeated: what is decided about them.

Belongs here: which batches a span touches, whether files have the same rows, which rows of a
mirror are not what the changelog says. Does not: reading and writing (`pipeline.runs.replaying`).
"""
