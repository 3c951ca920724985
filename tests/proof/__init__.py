"""Comparisons while others write, on real servers; ledger and lake in memory."""
