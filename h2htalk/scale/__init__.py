"""Runs on many machines: a suite of models, shards of a run, their merge; Slurm and Ray.

In: a suite (TOML), or one evaluation and `--shard 3/8`. Out: attempts at shards, and the run that one machine would
have made of them. What is finished is read from files, never from what an engine reports. Read `attempts`, then
`shards` and `merge`; `suite`, `slurm` and `ray_cluster` say who starts them.
"""
