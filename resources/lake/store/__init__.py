"""Where the lake lies: a folder of this machine or a prefix of an object store."""
