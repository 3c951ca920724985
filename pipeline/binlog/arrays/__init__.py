"""The tools of compiled code: compilation, loads and stores, and the places of values
(cells)."""
