"""The outside world, one room per system: MySQL, Postgres, the lake.

Each room offers adapters for `pipeline.ports` and translates its driver's exceptions
into `pipeline.errors`. Does not belong here: decisions, Dagster.
"""
