"""The transaction buffer, which returns whole transactions only, and its parts."""
