"""The decision where a run starts to read the log. The rules are the rows of one table
(`rules`); the first one that applies decides.

Not here: gathering facts, reading anchors, searching the log (`pipeline.run.begin`).
"""
