"""Rules by which a statement turns one schema into the next; `pipeline.schema.evolve` applies them.

They are pure: they read nothing from a server, and raise `CannotFollow` instead of guessing what
the schema does not say.
"""
