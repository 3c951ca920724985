"""Looking for places in a log: nothing is captured here."""
