"""Table maps and row images: where every value lies, and the Arrow columns made of them."""
