"""Statements of the log: their text → what they change, as written.

Belongs here: MySQL's lexical rules (`lexer`), the grammar of the statements that change
tables (`create`, `alter`, …), and `read.read_change`, the room's face. Nothing here knows
a schema: what an omitted character set or an IF EXISTS comes to is `pipeline.schema.evolve`.
"""
