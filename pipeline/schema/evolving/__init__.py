"""The rules by which a statement's change becomes the next schema.

The face is `pipeline.schema.evolve`. Pure: nothing is read from a server, and what the schema does
not say is refused (`CannotFollow`), never guessed.
"""
