"""A mirror made again: as of a transaction of the past, or in the place of the live one."""
