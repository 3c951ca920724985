"""The steps of a run: capture, publish, merge, acknowledge. Another step, verify,
compares the result with the source. They reach the outside world through ports
(Protocols of `pipeline.ports`).

Each step may be the first one of a new process. What is already done, it reads from the
ledger (in Postgres) and from the Delta logs, never from the result of an earlier step.
No step knows Dagster.
"""
