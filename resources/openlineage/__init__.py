"""OpenLineage events, which say what tables a run read and wrote.

Only this folder imports the official client, an extra of the package
(`lockstep[openlineage]`), and only if lockstep.toml has `[lineage]`.
"""
