"""The ports: what the steps of a run ask of the outside world.

Each Protocol is a contract: when a method is called, in what order, what may repeat,
and what is durable when it returns. Adapters live in `resources`, twins for tests in
`tests/twins`; one contract suite per port runs against all of them. Adapters raise
`pipeline.values.errors` only.
"""
