"""OpenLineage: which tables a run read, and what it wrote, for whoever keeps a graph of them.

The only room that imports the official client, an extra of the package (`lockstep[openlineage]`),
and only where `[lineage]` asks for it.
"""
