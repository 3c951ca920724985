"""Runs that begin as forks of a process which has imported what a run needs: most of a short run is
that. `lockstep spark serve` keeps such a process beside Spark, and `lockstep run` asks it first.

Belongs here: the process (`server`), what a fork does to be the run (`child`), asking for one
(`client`), and what they say to each other (`channel`, `surroundings`). Does not: what a run does,
which is the same code either way (`lockstep.cli`), and Spark's own server (`resources.lake`).

Linux alone has what it takes: descriptors of processes, and sockets that keep messages apart.
"""
