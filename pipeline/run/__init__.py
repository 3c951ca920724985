"""The three steps of a run: capture, merge (which publishes first) and acknowledge; and
what people ask for besides, such as a comparison or a replay. They reach the outside
world through ports (Protocols of `pipeline.ports`).

Each step may be the first one of a new process. What is already done, it reads from the
ledger (in Postgres) and from the Delta logs, never from the result of an earlier step.
No step knows Dagster.
"""
