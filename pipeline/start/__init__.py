"""Where a run starts: decided by facts, by the first rule of one table that applies.

`question` holds what a decision is drawn from and what it can be, `rules` the table of the
rules in `chosen`, `resumed` and `configured`,
`decision` how it is taken and written down. Does not belong here: gathering facts, reading
witnesses, searching the log (`pipeline.runs.begin`).
"""
