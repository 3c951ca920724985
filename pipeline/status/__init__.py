"""Judges the state of a source and of its tables from facts: one sentence says what is
wrong.

Pure: `pipeline.run.status.status` asks the ledger and the server, `lockstep` prints.
"""
