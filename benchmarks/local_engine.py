"""The local engine against TRL's GRPOTrainer: same base model, prompts, batch, loss, optimiser and machine, one thread each.

    python benchmarks/local_engine.py --base results/demo/base/toy --data results/demo/data/train.parquet

Both train plain GRPO (no rejection) on 16 prompts x 16 rollouts a step, at most 88 new tokens, and neither has a GPU. The two run
in turns, `--repeats` times each, so that a machine whose speed drifts is fair to both; the first steps of each run are
not counted. Reported are medians over all counted steps, in wall time and in CPU time of the process (which other
programs on the machine disturb less), and the accuracy of both trained models on fresh problems, which shows that they do
the same work. TRL lives in its own environment (.venv-trl, made here from constraints/trl.txt when it is absent).
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

for name, value in {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive", "HF_HUB_OFFLINE": "1"}.items():
    os.environ.setdefault(name, value)

ROOT = Path(__file__).resolve().parent.parent
PROMPTS, GROUP, NEW_TOKENS, LR, WARM_UP = 16, 16, 88, 3e-4, 2
REQUIRED = {"steps per second": 1.5, "generated tokens per second": 2.0}


def main() -> None:
    """Measure, print a table, write --out as JSON, and end with 1 where a required ratio is missed."""
    options = arguments()
    if options.worker:
        work(json.loads(Path(options.worker).read_text()))
        return
    with tempfile.TemporaryDirectory() as folder:
        report = measure(options, Path(folder))
    text = json.dumps(report, indent=2)
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(text + "\n")
    show(report)
    sys.exit(0 if all(report["ratios"][name][options.clock] >= least for name, least in REQUIRED.items()) else 1)


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", type=Path, default=ROOT / "results/demo/base/toy", help="folder of the base model")
    parser.add_argument("--data", type=Path, default=ROOT / "results/demo/data/train.parquet", help="training problems")
    parser.add_argument("--steps", type=int, default=20, help="steps of each run")
    parser.add_argument("--repeats", type=int, default=3, help="runs of each trainer, in turns")
    parser.add_argument("--trl-micro-rows", type=int, default=256, help="rows of TRL's forward pass; divides 256")
    parser.add_argument(
        "--clock", choices=["wall", "cpu"], default="wall", help="the time that the required ratios hold for"
    )
    parser.add_argument("--out", type=Path, help="JSON with every number")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    return parser.parse_args()


def measure(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Run both in turns; medians and ratios."""
    job = make_job(options)
    trl = trl_python()
    steps: dict[str, list[dict[str, float]]] = {"fr3e": [], "trl": []}
    for repeat in range(options.repeats):
        for name, command in (
            ("fr3e", [sys.executable, str(Path(__file__).resolve()), "--worker"]),
            ("trl", [str(trl), str(ROOT / "benchmarks/trl_worker.py")]),
        ):
            out = folder / f"{name}{repeat}.json"
            mine = job | {"out": str(out), "model_out": str(folder / f"model-{name}")}
            (folder / "job.json").write_text(json.dumps(mine))
            print(f"{name}, run {repeat + 1} of {options.repeats} ...", file=sys.stderr, flush=True)
            extra = [str(out)] if name == "trl" else []
            subprocess.run(
                [*command, str(folder / "job.json"), *extra], check=True, env=os.environ | {"PYTHONPATH": str(ROOT)}
            )
            steps[name] += per_step(json.loads(out.read_text()))
    medians = {name: summary(found) for name, found in steps.items()}
    accuracies = {name: accuracy(folder / f"model-{name}", job) for name in medians}
    accuracies["base"] = accuracy(Path(job["base"]), job)
    ratios = {
        "steps per second": {c: medians["trl"][f"step_{c}"] / medians["fr3e"][f"step_{c}"] for c in ("wall", "cpu")},
        "generated tokens per second": {
            c: medians["fr3e"][f"tokens_per_{c}"] / medians["trl"][f"tokens_per_{c}"] for c in ("wall", "cpu")
        },
    }
    return {"medians": medians, "ratios": ratios, "accuracy": accuracies, "steps": steps, "load": os.getloadavg()}


def make_job(options: argparse.Namespace) -> dict[str, Any]:
    """The common part: prompts in the order in which the local engine draws them."""
    from fr3e.engine.local.loading import load_tokenizer
    from fr3e.engine.local.problems import PromptStream, load_problems
    from fr3e.evaluation.prompts import render_text

    stream = PromptStream(load_problems(options.data), "demo", load_tokenizer(options.base), "0", 96)
    taken, _ = stream.take(0, PROMPTS * options.steps)
    return {
        "base": str(options.base.resolve()),
        "data": str(options.data.resolve()),
        "prompts": [render_text("demo", problem.question) for _, problem in taken],
        "golds": [problem.gold for _, problem in taken],
        "rows": PROMPTS * GROUP,
        "group": GROUP,
        "steps": options.steps,
        "max_new_tokens": NEW_TOKENS,
        "lr": LR,
        "seed": 0,
        "micro_rows": options.trl_micro_rows,
    }


def trl_python() -> Path:
    """The interpreter of TRL's environment, which is made when it is absent."""
    python = ROOT / ".venv-trl/bin/python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(ROOT / ".venv-trl")], check=True)
        pins = str(ROOT / "constraints/trl.txt")
        # Torch first: its CPU build must be there before anything else can ask for another one.
        subprocess.run([str(python), "-m", "pip", "install", "-q", "-c", pins, "torch"], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "-q", "-c", pins, "trl", "transformers"], check=True)
    return python


def work(job: dict[str, Any]) -> None:
    """One measured run of the local engine, through its public entry point; one step more, since the last one probes."""
    from fr3e.config.scenario import RunConfig
    from fr3e.engine.local import export
    from fr3e.engine.local.generator import LocalGenerator
    from fr3e.engine.local.train import Trainer, train

    out = Path(job["out"])
    run = RunConfig.model_validate(
        {
            "run": "bench",
            "scenario": "bench",
            "arm": "grpo",
            "model_name": "toy",
            "model": {"base": {"kind": "synthetic"}, "max_positions": 192, "template": "demo"},
            "seed": job["seed"],
            "base": job["base"],
            "data": job["data"],
            "training": {
                "rollout": {
                    "max_prompt_tokens": 96,
                    "max_total_tokens": job["max_new_tokens"],
                    "prompts_per_round": PROMPTS,
                },
                "fr3e": {"first_n": 0, "num_anchors": 0, "rollouts_per_state": job["group"], "alpha_mode": "none"},
                "accum": {"groups_per_update": PROMPTS, "reject_degenerate": False, "overflow": "drop"},
                "optim": {
                    "lr": job["lr"],
                    "beta2": 0.95,
                    "weight_decay": 0.0,
                    "minibatches": 1,
                    "updates": job["steps"],
                    "micro_batch_tokens": 6144,
                },
                "probe": {"every": 1000, "problems": 1, "samples": 1},
                "checkpoint": {"every": 1000, "keep": 1},
            },
        }
    )
    generation = {"wall": 0.0, "cpu": 0.0}
    steps: list[dict[str, float]] = []
    original_batch, original_step = LocalGenerator.generate_batch, Trainer.step

    def generate_batch(self: Any, requests: Any) -> Any:
        wall, cpu = time.perf_counter(), time.process_time()
        result = original_batch(self, requests)
        generation["wall"] += time.perf_counter() - wall
        generation["cpu"] += time.process_time() - cpu
        return result

    def step(self: Any, progress: Any, number: int, stopping: Any) -> Any:
        result = original_step(self, progress, number, stopping)
        clocks = {"wall": time.perf_counter(), "cpu": time.process_time(), "tokens": progress.tokens}
        steps.append(clocks | {f"generate_{name}": value for name, value in generation.items()})
        return result

    LocalGenerator.generate_batch = generate_batch  # type: ignore[method-assign]
    Trainer.step = step  # type: ignore[method-assign]
    folder = out.with_suffix("")
    train(run, folder)
    export.export(run, folder / "trained.json", Path(job["model_out"]))
    shutil.rmtree(folder)
    out.write_text(json.dumps(steps))


def per_step(clocks: list[dict[str, float]]) -> list[dict[str, float]]:
    """Differences between the ends of steps, without the warm-up and without the last step, in which our engine probes."""
    pairs = zip(clocks[WARM_UP - 1 : -2], clocks[WARM_UP:-1], strict=True)
    return [{name: after[name] - before[name] for name in after} for before, after in pairs]


def summary(steps: list[dict[str, float]]) -> dict[str, float]:
    """Medians over steps: seconds of a step and of its generation, tokens, tokens per second of generation."""
    names = {"step_wall": "wall", "step_cpu": "cpu", "generate_wall": "generate_wall", "generate_cpu": "generate_cpu"}
    result = {name: statistics.median(step[key] for step in steps) for name, key in names.items()}
    result["tokens"] = statistics.median(step["tokens"] for step in steps)
    for clock in ("wall", "cpu"):
        result[f"tokens_per_{clock}"] = statistics.median(step["tokens"] / step[f"generate_{clock}"] for step in steps)
    return result


def accuracy(model: Path, job: dict[str, Any]) -> float:
    """Share right at T = 1, four samples each, of 200 problems that no step has used."""
    from fr3e.engine.local.generator import LocalGenerator
    from fr3e.engine.local.loading import load_tokenizer
    from fr3e.engine.local.problems import PromptStream, load_problems
    from fr3e.evaluation.prompts import stop_ids
    from fr3e.exploration.records import Request
    from fr3e.grading import grade

    tokenizer = load_tokenizer(job["base"])
    stream = PromptStream(load_problems(job["data"]), "demo", tokenizer, "0", 96)
    taken, _ = stream.take(len(job["prompts"]), 200)
    generator = LocalGenerator(model, stop_ids(tokenizer, None))
    requests = [Request(p.uid, p.token_ids, 4, job["max_new_tokens"], f"accuracy/{p.uid}") for p, _ in taken]
    right = [
        bool(grade(tokenizer.decode(c.token_ids, skip_special_tokens=True), prompt.gold))
        for (prompt, _), completions in zip(taken, generator.generate_batch(requests), strict=True)
        for c in completions
    ]
    return sum(right) / len(right)


def show(report: dict[str, Any]) -> None:
    """The table."""
    medians = report["medians"]
    print(f"{'median over steps':38}{'fr3e':>12}{'TRL 1.16.0':>12}{'ratio':>8}")
    for clock, label in (("wall", "wall"), ("cpu", "CPU")):
        for key, title in (("step", "s per step"), ("generate", "s generating per step")):
            ours, theirs = (medians[name][f"{key}_{clock}"] for name in ("fr3e", "trl"))
            print(f"{f'{title} ({label})':38}{ours:12.3f}{theirs:12.3f}{theirs / ours:8.2f}")
        ours, theirs = (medians[name][f"tokens_per_{clock}"] for name in ("fr3e", "trl"))
        print(f"{f'generated tokens per s ({label})':38}{ours:12,.0f}{theirs:12,.0f}{ours / theirs:8.2f}")
    print("accuracy at T=1, unseen problems:", {name: round(value, 3) for name, value in report["accuracy"].items()})
    print("required:", ", ".join(f"{name} >= {least}x" for name, least in REQUIRED.items()))


if __name__ == "__main__":
    main()
