"""The state of a source and of its tables, judged from facts: what is wrong, in one sentence.

Pure: `pipeline.run.status.status` asks the ledger and the server, `lockstep` prints.
"""
