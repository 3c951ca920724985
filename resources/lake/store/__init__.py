"""Storage of the lake: a folder of this machine or a prefix of an object store."""
