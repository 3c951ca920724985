"""Looking, and a person's orders: nothing here captures or merges."""
