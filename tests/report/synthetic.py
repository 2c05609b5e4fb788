"""A results folder with metrics that have the columns, sizes and shapes of real demo runs, made without training.

The numbers follow simple laws (success rates that rise, entropies that fall) with binomial noise, so that pages can be
looked at and rules can be tested against known answers before any run exists.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from fr3e.config.load import load_scenario
from fr3e.config.plans import ReportPlan, report_plan
from fr3e.report.runs import ROOT

UPDATES, EVERY = 50, 10


def scenario_plan(config: str = "demo", **changes: Any) -> ReportPlan:
    """The report plan of config/<config>.yaml with few bootstrap draws; `changes` replace fields of the scenario."""
    scenario = load_scenario(ROOT / "config" / f"{config}.yaml")
    report = scenario.report.model_copy(update={"bootstrap_draws": 500})
    return report_plan(scenario.model_copy(update={"report": report} | changes), with_arms=False)


def write_results(folder: Path, plan: ReportPlan, skip: tuple[str, ...] = (), updates: int = UPDATES) -> Path:
    """Write the plan and its runs under `folder` (the working folder of the report); runs in `skip` stay absent."""
    path = folder / plan.results / "report.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(plan.model_dump(mode="json"), sort_keys=False), encoding="utf-8")
    for entry in plan.evaluated:
        if entry.run is None or entry.tag in skip:
            continue
        run = folder / entry.run
        run.mkdir(parents=True)
        rows = metrics_rows(entry.method, entry.seed or 0, updates, plan)
        write_jsonl(run / "metrics.jsonl", rows)
        write_jsonl(run / "trajectories.jsonl", trajectories(entry.method, entry.seed or 0, updates))
        trained = {
            "run": entry.tag,
            "updates": updates,
            "checkpoint": f"checkpoint/step_{updates}",
            "checkpoint_sha256": "0" * 64,
            "seconds": rows[-1]["seconds"],
            "tokens_total": rows[-1]["tokens_total"],
            "rollouts_total": sum(row.get("rollouts/first", 0) + row.get("rollouts/explore", 0) for row in rows),
            "gpus": 0,
            "hardware": {"cores": 2, "machine": "x86_64", "memory_gib": 7.6, "processor": "AMD EPYC"},
            "attempts": 1,
        }
        (run / "trained.json").write_text(json.dumps(trained), encoding="utf-8")
        config = {"run": entry.tag, "seed": entry.seed, "training": {"fr3e": {"anchor_in_prefix": False}}}
        (run / "run.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    return path


def write_jsonl(path: Path, rows: list[dict[str, Any]]) -> None:
    """One JSON object per line; NaN is refused."""
    path.write_text("".join(json.dumps(row, allow_nan=False) + "\n" for row in rows), encoding="utf-8")


def metrics_rows(method: str, seed: int, updates: int, plan: ReportPlan) -> list[dict[str, Any]]:
    """Row 0 (the probe) and one row per update."""
    rng = np.random.default_rng([seed, len(method)])
    probes = ["train", "chain", "chain_hard"] if plan.scenario == "demo" else ["train", "aime24", "math500"]
    rows: list[dict[str, Any]] = [{"update": 0, "seconds": 1.5, **probe(rng, 0.0, probes)}]
    tokens, seconds = 0, 1.5
    for update in range(1, updates + 1):
        progress = 1 - np.exp(-3 * update / updates)
        row = update_row(method, rng, progress)
        tokens += row["tokens/generated_first"] + row["tokens/generated_explore"]
        seconds += sum(row[f"seconds/{phase}"] for phase in ("generate", "grade", "update"))
        if update % EVERY == 0:
            row |= probe(rng, progress, probes) | {"seconds/probe": 1.2, "seconds/checkpoint": 0.05}
            seconds += 1.25
        rows.append({"update": update, "seconds": seconds, **row, "tokens_total": tokens})
    return rows


def probe(rng: np.random.Generator, progress: float, names: list[str]) -> dict[str, float]:
    """Full rollouts from fixed prompts: 64 problems, 4 samples."""
    values = {}
    for index, name in enumerate(names):
        values[f"probe/{name}/accuracy"] = (
            rng.binomial(256, (0.23 - 0.04 * index) + (0.57 - 0.1 * index) * progress) / 256
        )
        values[f"probe/{name}/entropy"] = 0.21 - 0.13 * progress + rng.normal(0, 0.004)
        values[f"probe/{name}/length"] = 30 + 11 * progress + 4 * index + rng.normal(0, 0.5)
        values[f"probe/{name}/truncated"] = max(0.0, rng.normal(0.01, 0.005))
        values[f"probe/{name}/advantage"] = -0.01 + 0.005 * progress
    return values


def update_row(method: str, rng: np.random.Generator, progress: float) -> dict[str, Any]:
    """One update of 256 rows: FR3E with K = 3, M = 8 and 32 groups, or GRPO++ with 16 groups of 16."""
    fr3e = method == "fr3e"
    size, prompts = (8, 14) if fr3e else (16, 22)
    states = 4 if fr3e else 1
    difficulty = rng.beta(1.6, 2.4 - 1.7 * progress, size=prompts)
    if fr3e:
        dropped = int((difficulty**4 > rng.random(prompts)).sum())
        difficulty = difficulty[: prompts - dropped] if dropped < prompts else difficulty[:1]
    else:
        dropped = 0
    lift = np.linspace(0, 0.14, states)
    rates = np.clip(difficulty[:, None] + lift[None, :] + rng.normal(0, 0.12, (len(difficulty), states)), 0.001, 0.999)
    right = rng.binomial(size, rates)
    values = right / size
    histogram = np.bincount(right.ravel(), minlength=size + 1)
    root = np.bincount(right[:, 0], minlength=size + 1)
    delta = np.diff(values, axis=1)
    alpha = np.concatenate([np.ones((len(values), 1)), np.exp(-delta)], axis=1)
    mixed = (right > 0) & (right < size)
    edges = np.linspace(np.log(0.36), np.log(2.72), 21)
    length = 30 + 11 * progress
    share = 0.62 if fr3e else 1.0
    generated = float(right.size * size * length * share)
    first = float(prompts * 4 * length) if fr3e else 0.0
    trained = 256 * length * share
    context = float(right.size * size * 12)
    row: dict[str, Any] = {
        "reward/explore": float(values.mean()),
        "groups/all_right": int((right == size).sum()),
        "groups/all_wrong": int((right == 0).sum()),
        "groups/mixed": int(mixed.sum()),
        "prompts/sampled": prompts,
        "prompts/all_right": dropped + int((right[:, 0] == size).sum()),
        "prompts/all_wrong": int((right[:, 0] == 0).sum()),
        "prompts/dropped": dropped,
        "groups/carried_in": 3,
        "groups/carried_out": 4,
        "groups/dropped": 0,
        "groups/trained": 256 // size,
        "rounds": 2,
        "successes": histogram.tolist(),
        "successes_root": root.tolist(),
        "entropy/trained": 0.195 - 0.13 * progress + rng.normal(0, 0.008) + (0.02 if fr3e else 0),
        "length/trained": length * share + rng.normal(0, 0.7),
        "length/full": length + rng.normal(0, 0.7),
        "truncated": max(0.0, rng.normal(0.01, 0.004)),
        "advantage/mean": rng.normal(0, 1e-9),
        "advantage/std": 0.33 - 0.08 * progress + rng.normal(0, 0.01),
        "advantage/min": -0.9,
        "advantage/max": 0.95,
        "advantage_raw/mean": rng.normal(0, 1e-9),
        "advantage_raw/std": 0.34 - 0.08 * progress + rng.normal(0, 0.01),
        "advantage_token/mean": -0.012 * (0.6 if fr3e else 1) + rng.normal(0, 0.004),
        "advantage_raw_token/mean": -0.013 * (0.7 if fr3e else 1) + rng.normal(0, 0.004),
        "advantage_token/std": 0.32 - 0.08 * progress,
        "advantage_raw_token/std": 0.33 - 0.08 * progress,
        "length_reward_covariance": -0.4 + 0.5 * progress + rng.normal(0, 0.15),
        "states/duplicate": int(rng.binomial(prompts, 0.25)) if fr3e else 0,
        "loss": rng.normal(0, 0.01),
        "clip_fraction": 0.0,
        "ratio/max": 1.0001,
        "grad_norm": 0.2 + rng.normal(0, 0.02),
        "lr": 3e-4,
        "policy_kl": 1e-5,
        "mismatch/mean": 1e-6,
        "mismatch/max": 4e-5,
        "tokens/generated_first": first,
        "tokens/generated_explore": generated,
        "tokens/discarded": first + generated - trained,
        "tokens/discarded_first": first,
        "tokens/discarded_explore": generated - trained,
        "tokens/trained": trained,
        "tokens/prefill": context * 2,
        "tokens/prefill_first": context * 0.3 if fr3e else 0.0,
        "tokens/prefill_explore": context * 1.7 if fr3e else context * 2,
        "tokens/prefill_cached": context * 1.8,
        "rollouts/first": prompts * 4 if fr3e else 0,
        "rollouts/explore": int(right.size * size),
        "seconds/generate": 0.9 + rng.normal(0, 0.05) if fr3e else 0.6 + rng.normal(0, 0.05),
        "seconds/grade": 0.01,
        "seconds/update": 0.85 + rng.normal(0, 0.03),
        "seconds/explore": 0.02,
        "verdicts": {"correct": int(right.sum()), "wrong": int((size - right).sum()), "no_answer": 1},
    }
    if fr3e:
        row["reward/first"] = float(difficulty.mean())
        row |= {
            "alpha/mean": float(alpha[mixed].mean()),
            "alpha/std": float(alpha[mixed].std()),
            "alpha/min": float(alpha[mixed].min()),
            "alpha/max": float(alpha[mixed].max()),
            "alpha/histogram": np.histogram(np.log(alpha[mixed]), edges)[0].tolist(),
            "delta_noise": float(
                np.sqrt(
                    values[:, 1:] * (1 - values[:, 1:]) / size + values[:, :-1] * (1 - values[:, :-1]) / size
                ).mean()
            ),
            "delta_std": float(delta.std()),
            "anchor/position": float(rng.normal(0.42, 0.02)),
            "anchor/histogram": rng.multinomial(
                prompts * 3, [0.22, 0.1, 0.12, 0.1, 0.1, 0.09, 0.09, 0.08, 0.06, 0.04]
            ).tolist(),
            "anchor/tokens": {
                t: int(n)
                for t, n in zip(
                    ["=", " ", "\\boxed{", "3", "-", "7", "+", "<b>", "*", "0"],
                    rng.poisson([9, 7, 5, 4, 3, 3, 2, 1, 1, 1]),
                    strict=True,
                )
            },
        }
        for j in range(states):
            row[f"value/state{j}"] = float(values[:, j].mean())
            row[f"value_count/state{j}"] = len(values)
            row[f"alpha/state{j}"] = float(alpha[:, j].mean())
    else:
        row |= {
            "value/state0": float(values.mean()),
            "value_count/state0": len(values),
            "alpha/mean": 1.0,
            "alpha/state0": 1.0,
        }
        row |= {"alpha/histogram": [0] * 10 + [16] + [0] * 9}
    return row


def trajectories(method: str, seed: int, updates: int) -> list[dict[str, Any]]:
    """Two bases per probe in the demo's language; FR3E's carry anchors and states, GRPO++'s only the root."""
    rng = np.random.default_rng([seed, len(method), 7])
    rows = []
    for update in range(0, updates + 1, EVERY):
        for _ in range(2):
            operands = rng.integers(0, 10, size=7)
            operators = rng.choice(list("+-*"), size=6)
            value, steps = int(operands[0]), []
            for operator, operand in zip(operators, operands[1:], strict=True):
                result = {"+": value + operand, "-": value - operand, "*": value * operand}[str(operator)] % 10
                steps += [str(value), str(operator), str(operand), "=", str(result), " "]
                value = int(result)
            tokens = [*steps, "\\boxed{", str(value), "}", "<|im_end|>"]
            entropies = np.where(
                [t in ("=", " ", "\\boxed{") for t in tokens],
                rng.gamma(1.5, 0.35, len(tokens)),
                rng.gamma(0.4, 0.12, len(tokens)),
            )
            question = str(operands[0]) + "".join(f"{o}{n}" for o, n in zip(operators, operands[1:], strict=True)) + "?"
            anchors = (
                sorted(np.argsort(-entropies[: len(tokens) - 4], kind="stable")[:3].tolist())
                if method == "fr3e"
                else []
            )
            values = [0.375, 0.5, 0.625, 0.75]
            states = [{"k": 0, "value": values[0], "previous": None, "alpha": 1.0}] + [
                {"k": k, "value": v, "previous": p, "alpha": float(np.exp(p - v))}
                for k, v, p in zip(anchors, values[1:], values, strict=False)
            ]
            rows.append(
                {
                    "update": update,
                    "prompt": f"<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n",
                    "question": question,
                    "gold": str(value),
                    "token_ids": [3 + len(t) for t in tokens],
                    "tokens": tokens,
                    "entropies": [round(float(h), 5) for h in entropies],
                    "anchors": anchors,
                    "states": states,
                    "reward": 1.0,
                }
            )
    return rows
