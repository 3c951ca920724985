"""Decisions about reading a table from the source: where it is divided, how much is read at a time.

Not here: the queries (`resources.mysql`), the state of a load (`pipeline.model.load`,
`pipeline.run`).
"""
