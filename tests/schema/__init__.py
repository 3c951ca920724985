"""Tests of the schema history: statements, and following them on real servers."""
