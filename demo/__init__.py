"""A shop with traffic, a MySQL to run it on, and the guided first run.

The tests and the benchmarks use the same MySQL and the same shop. All of it comes with a checkout
and is no part of the wheel: nothing of the product needs it.
"""
