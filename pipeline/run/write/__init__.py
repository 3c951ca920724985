"""What one table's write is made of, and carrying it out."""
