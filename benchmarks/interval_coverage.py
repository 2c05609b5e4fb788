"""How often the bootstrap interval of Table 1 holds the truth, by number of seeds and problems.

    python benchmarks/interval_coverage.py [--trials N]

Truth: seeds with abilities N(0, s), problems with difficulties N(0, 1.5), chance of a right answer logistic in their
difference, so that the mean over both populations is one half. Each trial draws seeds, problems and greedy answers.
The paired row compares two methods without any difference, as Table 1 does.
"""

import argparse

import numpy as np

from fr3e.evaluation.statistics import mean_interval, paired_difference

DRAWS = 1000


def answers(rng: np.random.Generator, seeds: int, difficulty: np.ndarray, spread: float) -> np.ndarray:
    """0/1 [N, P]."""
    ability = rng.normal(0, spread, (seeds, 1))
    return (rng.random((seeds, len(difficulty))) < 1 / (1 + np.exp(difficulty - ability))).astype(float)


def main() -> None:
    """Print the shares as a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=400)
    trials = parser.parse_args().trials
    print(f"nominal 95 %, {trials} trials, {DRAWS} draws\n")
    print("| seeds | problems | spread of seeds | mean | paired difference |\n| ---: | ---: | ---: | ---: | ---: |")
    for seeds in (1, 3, 5, 10):
        for problems in (40, 300):
            for spread in (0.1, 0.3):
                rng = np.random.default_rng([seeds, problems, int(10 * spread)])
                held, null = 0, 0
                for trial in range(trials):
                    difficulty = rng.normal(0, 1.5, problems)
                    one, two = (answers(rng, seeds, difficulty, spread) for _ in range(2))
                    estimate = mean_interval([one], draws=DRAWS, seed=trial)
                    held += estimate.low <= 0.5 <= estimate.high
                    null += not paired_difference([one], [two], draws=DRAWS, seed=trial).excludes_zero
                print(f"| {seeds} | {problems} | {spread} | {held / trials:.1%} | {null / trials:.1%} |", flush=True)


if __name__ == "__main__":
    main()
