"""A module per command (`orders` has four), each with `perform(arguments, context) -> Outcome`.

A command gathers, calls `pipeline.runs`, shows a person lines, and hands over values, of which
`pipeline.json_values` makes JSON. Spark, Dagster and drivers are imported inside functions, so that
refusals answer at once; `--help` imports no command.
"""
