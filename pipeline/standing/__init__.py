"""Where a source stands, and in one sentence what is the matter.

`facts` holds the values, `measures` how far behind and how long the log lasts, `verdict`
the sentence. Pure: asking the ledger and the server is `pipeline.runs.inspecting.status`, printing
`lockstep`.
"""
