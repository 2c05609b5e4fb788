"""The distributed engine: FR3E on verl 0.9.1 (Ray, FSDP2, vLLM) by registries and subclasses. The only folder that imports them.

`launch.train` starts an attempt and watches it; inside Ray, `trainer.FR3ETrainer` gathers explorations, which
`rollout.FR3EWorker` makes with the same coroutine as the local engine; `rows` maps state groups to training rows.
docs/verl.md names each seam and each trap.
"""

VERL_VERSION = "0.9.1"
