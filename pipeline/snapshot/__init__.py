"""Decides how a table is read from the source by SELECT: where it is divided into
chunks, how many rows are read at a time, and when a read waits or is given up.

Not here: the queries (`resources.mysql`), the state of a load (`pipeline.model.load`,
`pipeline.run`).
"""
