"""The ports: Protocols for everything that the steps of a run ask of the outside world.

Each Protocol is a contract: it says when a method is called, in which order, which
calls may repeat, and which effects are durable when a method returns. The adapters, in
`resources`, raise only the errors of `pipeline.values.errors`. `tests/twins` has
implementations in memory for tests; one contract suite per port runs against both.
"""
