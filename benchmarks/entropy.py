"""Time of exact entropies and log-probs against plain log_softmax, and peak memory, at a language model's vocabulary.

    python benchmarks/entropy.py [--rows 256] [--vocabulary 151936] [--threads 1 2] [--device cpu] [--json FILE]

The two are timed in turn and the fastest of the repeats counts, so that a busy machine disturbs the ratio little. The goal
is a ratio of at most 1.2, and no memory beside the logits but one bounded chunk.
"""

import argparse
import json
import os
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import torch

from fr3e.algorithm.entropy import CPU_CHUNK_BYTES, GPU_CHUNK_BYTES, entropy_and_logprobs


def timed(calls: dict[str, Callable[[], object]], device: str, repeats: int) -> dict[str, float]:
    """Seconds of each call: the fastest of `repeats`, the calls taking turns."""
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(repeats):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            if device != "cpu":
                torch.cuda.synchronize()
            best[name] = min(best[name], time.perf_counter() - start)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=256)
    parser.add_argument("--vocabulary", type=int, default=151_936)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--json", type=Path, default=None)
    options = parser.parse_args()
    torch.manual_seed(0)
    logits = 3 * torch.randn(options.rows, options.vocabulary, device=options.device)
    token_ids = torch.randint(0, options.vocabulary, (options.rows,), device=options.device)
    results = []
    for threads in options.threads:
        torch.set_num_threads(threads)
        calls = {
            "log_softmax": lambda: logits.log_softmax(-1),
            "entropy_and_logprobs": lambda: entropy_and_logprobs(logits, token_ids),
        }
        seconds = timed(calls, options.device, options.repeats)
        ratio = seconds["entropy_and_logprobs"] / seconds["log_softmax"]
        results.append({"threads": threads, **seconds, "ratio": ratio})
        print(
            f"{threads} threads: log_softmax {seconds['log_softmax'] * 1e3:.1f} ms, "
            f"entropy_and_logprobs {seconds['entropy_and_logprobs'] * 1e3:.1f} ms, ratio {ratio:.2f}"
        )
    chunk = CPU_CHUNK_BYTES if options.device == "cpu" else GPU_CHUNK_BYTES
    print(f"logits {logits.numel() * 4 / 2**20:.0f} MiB, chunk {chunk / 2**20:.0f} MiB")
    if options.json:
        options.json.write_text(json.dumps({"device": options.device, "rows": options.rows, "runs": results}, indent=2))


if __name__ == "__main__":
    main()
