"""The demo: a shop with traffic, a MySQL server to run it on, and the guided first run.

Tests and benchmarks use the same server and the same shop. The demo is part of the repository, but
not of the wheel.
"""
