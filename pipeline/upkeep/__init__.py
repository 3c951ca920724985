"""What a mirror needs so that it stays small and quick to read: `facts` in, `decide` out."""
