"""What a lake tells without its ledger: `facts` and `read` say what it shows, `decide` where to
go on."""
