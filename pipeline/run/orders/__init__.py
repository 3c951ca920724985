"""Records what people order about tables: stop, resume, reload. Runs carry it out."""
