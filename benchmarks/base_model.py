"""Measure the demo's base model: success at T = 1 and greedy per family, lengths, and entropy by what a token decides.

    python benchmarks/base_model.py results/demo/base/toy --config config/demo.yaml

Prints the tables of docs/demo.md. One thread; about 20 s on a quiet core.
"""

import argparse
import os

os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import math
from collections import defaultdict
from pathlib import Path
from statistics import mean, stdev

import torch
from transformers import AutoTokenizer, GenerationConfig, PreTrainedTokenizerBase

from fr3e.config import load_scenario
from fr3e.config.scenario import Benchmark
from fr3e.data.synthetic import BenchmarkSource, benchmark_rows
from fr3e.engine.local.generator import LocalGenerator
from fr3e.evaluation.prompts import render, stop_ids
from fr3e.exploration.records import Completion, Request

Z = 1.96


def sample(
    generator: LocalGenerator, tokenizer: PreTrainedTokenizerBase, rows: list[dict], template: str, n: int, t: float
) -> list[list[Completion]]:
    """n completions per row at temperature t."""
    return generator.generate_batch(
        [
            Request(row["id"], tuple(render(template, row["question"], tokenizer)[1]), n, 88, f"{row['id']}/{t}", t)
            for row in rows
        ]
    )


def right(completion: Completion, gold: str, tokenizer: PreTrainedTokenizerBase) -> bool:
    """Whether the response closes with the gold in its box; stricter than the grader, equal on this format."""
    text = tokenizer.decode(list(completion.token_ids), skip_special_tokens=True)
    return completion.finished and text.endswith(f"\\boxed{{{gold}}}")


def role(text: str) -> str:
    """What the next token decides, from the response so far."""
    line = text.rsplit("\n", 1)[-1]
    operands = sum(character in "+-*" for character in line)
    if "\\" in line:
        return "answer digit" if line.endswith("{") else "rest of the box, end"
    if line.endswith("="):
        return "result of a single step" if operands == 1 else "result of a merged step"
    if not line or "=" in line:
        start = "next step, or jump to the box" if text else "first digit (copied)"
        return "end of line" if line else start
    if line[-1] in "+-*":
        return "operand (copied)"
    return ("operator (copied)", "close the step or merge", "close the merged step")[min(operands, 2)]


def accuracy(
    generator: LocalGenerator, tokenizer: PreTrainedTokenizerBase, name: str, benchmark: Benchmark, template: str
) -> list[list[Completion]]:
    """Print one row of the first table; returns the completions at T = 1."""
    rows = benchmark_rows(name, BenchmarkSource(family=benchmark.family, sample_of=benchmark.sample_of))
    sampled = sample(generator, tokenizer, rows, template, 8, 1.0)
    greedy = [c for (c,) in sample(generator, tokenizer, rows, template, 1, 0.0)]
    shares = [mean(right(c, row["gold"], tokenizer) for c in cs) for row, cs in zip(rows, sampled, strict=True)]
    best = mean(right(c, row["gold"], tokenizer) for row, c in zip(rows, greedy, strict=True))
    everything = [c for cs in sampled for c in cs]
    print(
        f"| {benchmark.title} | {mean(shares):.3f} ± {Z * stdev(shares) / math.sqrt(len(rows)):.3f} "
        f"| {best:.3f} ± {Z * math.sqrt(best * (1 - best) / len(rows)):.3f} "
        f"| {mean(len(c.token_ids) for c in everything):.1f} | {mean(not c.finished for c in everything):.3f} "
        f"| {mean(share == 0 for share in shares):.2f} / {mean(share == 1 for share in shares):.2f} |",
        flush=True,
    )
    return sampled


def entropies(tokenizer: PreTrainedTokenizerBase, sampled: list[list[Completion]]) -> None:
    """Print mean entropy at T = 1 by what the token decides."""
    found: dict[str, list[float]] = defaultdict(list)
    for completion in (c for cs in sampled for c in cs):
        text = ""
        for token, entropy in zip(completion.token_ids, completion.entropies.tolist(), strict=True):
            found[role(text)].append(entropy)
            text += tokenizer.decode([token])
    everything = [entropy for values in found.values() for entropy in values]
    print("\n| the token decides | share of tokens | mean entropy | max |\n|---|---|---|---|")
    for name, values in sorted(found.items(), key=lambda item: -mean(item[1])):
        print(f"| {name} | {len(values) / len(everything):.3f} | {mean(values):.3f} | {max(values):.2f} |")
    high, low = mean(e > 0.5 for e in everything), mean(e < 0.01 for e in everything)
    print(f"\nmean {mean(everything):.3f} nat; {high:.0%} of tokens above .5, {low:.0%} below .01")


def main() -> None:
    """Load, sample, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--config", type=Path, default=Path("config/demo.yaml"))
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    scenario = load_scenario(arguments.config)
    template = next(iter(scenario.models.values())).template
    tokenizer = AutoTokenizer.from_pretrained(arguments.model)
    stops = stop_ids(tokenizer, GenerationConfig.from_pretrained(arguments.model))
    generator = LocalGenerator(arguments.model, stops)
    print("| family | T = 1 | greedy | tokens | cut off | none / all right of 8 |\n|---|---|---|---|---|---|")
    sampled = {
        name: accuracy(generator, tokenizer, name, benchmark, template)
        for name, benchmark in scenario.benchmarks.items()
    }
    entropies(tokenizer, next(iter(sampled.values())))


if __name__ == "__main__":
    main()
