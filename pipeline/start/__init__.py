"""The decision where a run starts: the first rule of one table that applies (`rules`).

Not here: gathering facts, reading witnesses, searching the log (`pipeline.runs.begin`).
"""
