"""What Lockstep costs, as ratios inside one run on one machine: `make bench`.

Belongs here: workloads, the floors they are held against, and printing. Does not:
asserts; a benchmark never fails a build.
"""
