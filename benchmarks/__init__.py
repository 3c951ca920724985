"""Benchmarks: what Lockstep costs, as ratios to other programs in the same run on the same host
(`make bench`). They print figures and assert nothing."""
