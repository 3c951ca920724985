"""Damaged logs: whatever the bytes, typed errors and nothing else."""
