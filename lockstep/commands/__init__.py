"""A module per command, or for a few that belong together, each with `perform(arguments, context)`.

A command gathers, calls `pipeline.runs`, shows a person lines, and hands over values, of which
`pipeline.json_values` makes JSON. Spark and Dagster are imported inside functions; `--help`, and
what the grammar refuses, import no command.
"""
