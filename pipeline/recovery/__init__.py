"""What a lake tells without its ledger: `facts` says what it shows, `decide` where to go on."""
