"""Asset checks: they report what the ledger recorded, and block nothing.

What must stop an acknowledgement is decided where the ledger is written, not here.
"""
