"""The ports: Protocols for everything that the steps of a run ask of the outside world.

Each Protocol is a contract: it says when a method is called, in which order, which
calls may repeat, and which effects are durable when a method returns. `tests/twins` has
implementations in memory for tests; one contract suite per port runs against both.

The adapters, in `resources`, raise only the errors of `pipeline.values.errors`. Any
method that reaches the outside world raises `LakeUnavailable`, `SourceUnavailable`,
`CatalogUnavailable` or `LedgerUnavailable` if the system behind its port does not
answer or fails. Methods of `Mirrors` raise `MirrorRefused` if only the log or files of
one mirror cannot be used. Docstrings name the other errors.
"""
