"""A shop with traffic, a MySQL to run it on, and the guided first run.

The tests use the same MySQL and the same shop. Nothing of the product needs this room.
"""
