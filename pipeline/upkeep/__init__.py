"""What upkeep does: files of mirrors (`facts`, `decide`), and old changes (`changes`)."""
