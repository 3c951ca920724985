"""Where runs start, end and go on, on real servers; ledger and lake in memory."""
