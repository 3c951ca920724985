"""The tools of compiled code: how it is compiled, loads and stores in arrays, and cells."""
