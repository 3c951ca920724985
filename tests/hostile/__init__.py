"""What must never make wrong data: whoever wakes up late, ledgers and lakes that were restored,
commits of somebody else, literals, engines and character sets drawn by chance.

Belongs here: trials that try to get a wrong row into the lake, or to keep a source from ever
going on, each judged by comparing both sides. A part of each runs in every `make test`, of those
that type a page in `make acceptance`, the rest in `make soak`. Does not: the rules that stop them,
which are tested beside their module's room.
"""
