"""The rules by which a statement's change becomes the next schema.

Belongs here: one module per part of a table (columns, keys, foreign keys, options) and one
per kind of statement. The face is `pipeline.schema.evolve`. Pure: nothing is read from a
server, and what the schema does not say is refused (`CannotFollow`), never guessed.
"""
