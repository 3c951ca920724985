"""The decision where a run starts: the first rule of one table that applies (`rules`).

Not here: gathering facts, reading anchors, searching the log (`pipeline.run.begin`).
"""
