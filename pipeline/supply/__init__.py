"""How a table is brought to a place: what it has, what is wanted, and what supplies the rest.

The values and the table of rules, without I/O: runs gather the facts and carry out the steps
(`pipeline.run`)."""
