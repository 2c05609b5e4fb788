"""The two engines. They differ in how they run, not in what they compute: both call `fr3e.algorithm` and `fr3e.exploration`."""

from pathlib import Path

from fr3e.config.scenario import RunConfig


def train(run: RunConfig, out: Path) -> None:
    """Train `run` to its last update with the engine it names.

    Writes out/dropped_prompts.json first, then out/metrics.jsonl and out/trained.json.
    """
    from fr3e.engine.long_prompts import record_long_prompts

    record_long_prompts(run, out)
    if run.training.engine == "verl":
        from fr3e.engine.verl.launch import train as start
    else:
        from fr3e.engine.local.train import train as start
    start(run, out)


def export(run: RunConfig, trained: Path, out: Path) -> None:
    """Turn the run's last checkpoint into a model folder that transformers and vLLM load."""
    if run.training.engine == "verl":
        from fr3e.engine.verl.export import export as start
    else:
        from fr3e.engine.local.export import export as start
    start(run, trained, out)
