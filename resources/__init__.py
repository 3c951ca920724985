"""Adapters for the systems outside, one folder or module for each: MySQL, Postgres, the
lake and others.

They implement `pipeline.ports`, and turn their drivers' exceptions into
`pipeline.values.errors`. Decisions belong to `pipeline`.
"""
