"""Decides how a table is brought up to a place in the log: what it has, what is wanted,
and which source supplies the difference. Values and rules only, without I/O:
`pipeline.run` gathers the facts and carries out the steps."""
