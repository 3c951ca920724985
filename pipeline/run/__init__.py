"""The steps of a run, each written against ports: capture, publish, merge, acknowledge;
verify compares the result with the source.

Each step may be the first one of a new process. It reads from the ledger and the Delta
logs what is done already, never from what an earlier step returned. No step here knows
Dagster.
"""
