"""Where a source stands, and in one sentence what is the matter.

Pure: asking the ledger and the server is `pipeline.runs.inspecting.status`, printing
`lockstep`.
"""
