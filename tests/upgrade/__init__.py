"""Ledgers and lakes of released versions, each in a folder of its version's name, and the test that
this version goes on from each of them.

`python -m tests.upgrade` records the folder of the present version; it belongs to each release.
"""
