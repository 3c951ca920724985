"""What the ledger and the logs of the lake keep, as values: batches, loads, the life of a table,
commits, claims, gaps.
"""
