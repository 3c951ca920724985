"""One module per command, each with `perform(arguments, context) -> Outcome`.

A command gathers, calls `pipeline.runs`, and hands facts to `lockstep.report`. Heavy
imports stand inside functions: `--help` and refusals answer at once.
"""
