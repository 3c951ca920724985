"""The lake's ports in memory, for tests and for trying a step without servers.

Twins answer the same calls with the same values and errors as the adapters; one
contract suite per port runs against both. Does not belong here: patches, recordings,
anything that answers differently.
"""
