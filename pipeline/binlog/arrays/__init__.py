"""The tools of compiled code: compilation, loads and stores, and the offsets of values
(cells)."""
