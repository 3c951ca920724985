"""The parts of pages that code makes: `make pages` renews them, and a test compares them.

Belongs here: one module for each part, which says in Markdown what the product's tables say. Does
not: the tables, nor what is written on a page by hand.
"""
