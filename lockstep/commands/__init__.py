"""One module for each command, or for a few related ones, each with `perform(arguments,
context)`.

A command calls `pipeline.run`, prints lines for people, and returns values that
`pipeline.model.json_values` turns into JSON. Spark and Dagster are imported inside
functions. `--help` and usage errors import no command at all.
"""
