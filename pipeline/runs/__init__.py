"""The steps of a run, each written against ports: capture, publish, merge, acknowledge;
and what looks at the result: verify.

Each step may be the first that a new process makes. It asks the ledger and the Delta
log what is done, never what an earlier step returned. No step here knows Dagster.
"""
