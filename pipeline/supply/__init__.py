"""How a table is brought to a place: what it has, what is wanted, and what supplies the rest.

Belongs here: the values and the table of rules. Pure: a run gathers what there is, and carries out
the steps (`pipeline.runs`)."""
