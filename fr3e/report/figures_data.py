"""What the curve figures show: for each figure its panels, each a function from a metrics row to a number.

"As logged" is what the paper's curves show: continuations and state groups that were trained on. It favours neither
method by intent but compares unlike things: FR3E's continuations start from a prefix, its groups are states. "Common
protocol" compares the same thing for both: full rollouts from fixed prompts, or root groups reduced to equal size.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import comb

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fr3e.report.curves import AXES, Axis, Curve, Value, band, column, curve
from fr3e.report.runs import Row, Run, of

LOGGED, COMMON = "as logged", "common protocol"


@dataclass(frozen=True, slots=True)
class Panel:
    """One row of a curve figure. `protocol` is its key in the CSV, `title` what stands above it.

    `probe` marks values of probes, which are never smoothed; others are logged at every update and noisy.
    """

    protocol: str
    title: str
    ylabel: str
    value: Value
    share: bool = False
    probe: bool = False


def probe_panel(title: str, ylabel: str, name: str, protocol: str = COMMON, *, share: bool = False) -> Panel:
    """A panel of a probe column."""
    return Panel(protocol, title, ylabel, column(f"probe/{name}"), share, probe=True)


def group_share(row: Row, kind: str) -> float | None:
    """Share of state groups that are `kind` (all_right, all_wrong), before filtering; None without groups."""
    counts = [row.get(f"groups/{k}") for k in ("all_right", "all_wrong", "mixed")]
    if None in counts or not sum(counts):
        return None
    return row[f"groups/{kind}"] / sum(counts)


def prompt_share(row: Row, kind: str) -> float | None:
    """Share of sampled prompts that are right or wrong in all their full rollouts."""
    if not row.get("prompts/sampled") or row.get(f"prompts/{kind}") is None:
        return None
    return row[f"prompts/{kind}"] / row["prompts/sampled"]


def reduced_share(successes: Sequence[int], size: int, right: bool) -> float | None:
    """Expected share of groups all right (or all wrong) if only `size` of each group's n rollouts had been drawn.

    `successes` [n + 1] counts groups by successes s. Drawing without replacement, a group is all right with probability
    C(s, size) / C(n, size), all wrong with C(n - s, size) / C(n, size): unbiased, and comparable between group sizes.
    Raises `ValueError` when `size` exceeds n.
    """
    n, total = len(successes) - 1, sum(successes)
    if size > n:
        raise ValueError(f"cannot reduce groups of {n} to {size}")
    if not total:
        return None
    chance = [comb(s if right else n - s, size) / comb(n, size) for s in range(n + 1)]
    return float(np.dot(successes, chance)) / total


def root_share(row: Row, size: int, right: bool) -> float | None:
    """`reduced_share` of a row's root groups."""
    successes = row.get("successes_root")
    return reduced_share(successes, size, right) if successes else None


def root_size(runs: Sequence[Run]) -> int:
    """The smallest root-group size among the runs, to which all are reduced; 1 without data."""
    sizes = [len(row["successes_root"]) - 1 for run in runs for row in run.updates[:1] if row.get("successes_root")]
    return min(sizes, default=1)


def group_panels(runs: Sequence[Run], kind: str, name: str) -> list[Panel]:
    """The panels of Fig. 7 and 8."""
    size = root_size(runs)
    return [
        Panel(LOGGED, f"{name} state groups, as logged", "share of groups", partial(group_share, kind=kind), True),
        Panel(
            "per prompt",
            f"{name} prompts, all full rollouts",
            "share of prompts",
            partial(prompt_share, kind=kind),
            True,
        ),
        Panel(
            COMMON,
            f"{name} root groups, common protocol (n = {size})",
            "share of root groups",
            partial(root_share, size=size, right=kind == "all_right"),
            True,
        ),
    ]


def probed(runs: Sequence[Run]) -> list[str]:
    """Names that were probed, the training set first."""
    found = {key.split("/")[1] for run in runs for row in run.rows for key in row if key.startswith("probe/")}
    return sorted(found, key=lambda name: (name != "train", name))


def curve_panels(runs: Sequence[Run], titles: Mapping[str, str]) -> dict[str, list[Panel]]:
    """Panels of every curve figure; `titles` names the benchmarks."""
    return {
        "fig3_entropy": [
            Panel(LOGGED, "Entropy of trained tokens, as logged", "nat per token", column("entropy/trained")),
            probe_panel("Entropy of full rollouts, common protocol", "nat per token", "train/entropy"),
        ],
        "fig4_length": [
            Panel(LOGGED, "Length of trained continuations, as logged", "tokens", column("length/trained")),
            Panel("prefix + continuation", "Prefix + continuation of trained rows", "tokens", column("length/full")),
            probe_panel("Length of full rollouts, common protocol", "tokens", "train/length"),
        ],
        "fig5_advantage": [
            Panel(LOGGED, "Token mean of A′, after alpha (as logged)", "advantage", column("advantage_token/mean")),
            Panel("before alpha", "Token mean of A, before alpha", "advantage", column("advantage_raw_token/mean")),
            probe_panel("Token mean of A, full rollouts, common protocol", "advantage", "train/advantage"),
            Panel("spread", "Spread of A′ over sequences", "standard deviation", column("advantage/std")),
        ],
        "fig7_all_wrong": group_panels(runs, "all_wrong", "All-Wrong"),
        "fig8_all_right": group_panels(runs, "all_right", "All-Right"),
        "learning_curves": [
            probe_panel(
                f"Accuracy: {titles.get(name, 'training problems')}", "accuracy", f"{name}/accuracy", name, share=True
            )
            for name in probed(runs)
        ],
        "states_filtered": [
            Panel("filtered", "State groups left out: all right or all wrong", "share of groups", filtered_share, True),
            Panel("duplicate", "States left out: equal to another", "share of states", duplicate_share, True),
        ],
        "length_reward_covariance": [
            Panel(LOGGED, "Mean within-group Cov(length, reward)", "tokens", column("length_reward_covariance"))
        ],
    }


def filtered_share(row: Row) -> float | None:
    """Share of groups rejected because all rewards are equal."""
    right, wrong = group_share(row, "all_right"), group_share(row, "all_wrong")
    return None if right is None or wrong is None else right + wrong


def duplicate_share(row: Row) -> float | None:
    """Duplicates among all states that were asked for."""
    counts = [row.get(f"groups/{k}") for k in ("all_right", "all_wrong", "mixed")]
    duplicates = row.get("states/duplicate")
    if None in counts or duplicates is None or not sum(counts) + duplicates:
        return None
    return duplicates / (sum(counts) + duplicates)


COLUMNS = ["model", "method", "protocol", "axis", "x", "mean", "low", "high", "raw", "window", "seeds"]


def curve_table(
    runs: Sequence[Run], models: Sequence[str], methods: Sequence[str], panels: Sequence[Panel], confidence: float
) -> pd.DataFrame:
    """All lines of a figure, one row per point: `COLUMNS`; `low` and `high` are empty with one seed.

    `mean` is a moving mean over `window` updates (1: none), `raw` the mean over seeds of the values as logged.
    """
    parts = []
    for model in models:
        for method in methods:
            for panel in panels:
                for axis in AXES:
                    line = line_table(of(runs, model, method), panel, axis, confidence)
                    if line is not None:
                        parts.append(line.assign(model=model, method=method, protocol=panel.protocol, axis=axis))
    return pd.concat(parts, ignore_index=True)[COLUMNS] if parts else pd.DataFrame(columns=COLUMNS)


def line_table(runs: Sequence[Run], panel: Panel, axis: Axis, confidence: float) -> pd.DataFrame | None:
    """One line's points with their band; None without data."""
    curves: list[Curve] = [curve(run, panel.value, axis) for run in runs]
    line = band(curves, axis, confidence, smooth=not panel.probe)
    if line is None:
        return None
    low, high = (np.clip(line.low, 0, 1), np.clip(line.high, 0, 1)) if panel.share else (line.low, line.high)
    return pd.DataFrame(
        {
            "x": line.x,
            "mean": line.mean,
            "low": low,
            "high": high,
            "raw": line.raw,
            "window": line.window,
            "seeds": line.seeds,
        }
    )


def reduced_histogram(successes: Sequence[float], size: int) -> NDArray[np.float64]:
    """Expected histogram [size + 1] of successes if only `size` of each group's n rollouts had been drawn.

    A group with s of n right gives t of `size` right with probability C(s, t) C(n - s, size - t) / C(n, size)
    (hypergeometric); the ends of the histogram are `reduced_share`. Raises `ValueError` when `size` exceeds n.
    """
    n = len(successes) - 1
    if size > n:
        raise ValueError(f"cannot reduce groups of {n} to {size}")
    chance = [[comb(s, t) * comb(n - s, size - t) / comb(n, size) for t in range(size + 1)] for s in range(n + 1)]
    return np.asarray(successes, dtype=float) @ np.asarray(chance)


HEAT = ["model", "method", "protocol", "first_update", "last_update", "tokens", "successes", "of", "share", "seeds"]
HEAT_COLUMNS = 50


def heat_table(runs: Sequence[Run], models: Sequence[str], methods: Sequence[str]) -> pd.DataFrame:
    """Fig. 9: share of groups with s successes over training, averaged over seeds: columns `HEAT`.

    As logged: all state groups, s of M or n. Common protocol: root groups, reduced to the smallest size of all methods.
    Long runs pool neighbouring updates into at most `HEAT_COLUMNS` spans. `tokens` (generated by the end of the span) is
    the mean over all seeds, so that it rises; a seed that ended before keeps its total. A span without groups in a seed leaves that seed out of the
    mean share; `seeds` says how many are in it.
    """
    size, parts = root_size(runs), []
    for model in models:
        longest = max((run.rows[-1]["update"] for run in runs if run.model == model), default=1)
        width = -(-longest // HEAT_COLUMNS)
        for method in methods:
            chosen = of(runs, model, method)
            generated = [curve(run, column("tokens_total"), "updates") for run in chosen]
            for protocol in (LOGGED, COMMON):
                for span, entries in sorted(histograms(chosen, protocol, size, width).items()):
                    shares = np.mean([counts / counts.sum() for counts in entries], axis=0)
                    cells = {"successes": np.arange(len(shares)), "of": len(shares) - 1, "share": shares}
                    facts = {"model": model, "method": method, "protocol": protocol}
                    last = min((span + 1) * width, longest)
                    where = {"first_update": span * width + 1, "last_update": last}
                    tokens = tokens_until(generated, last)
                    parts.append(pd.DataFrame({**facts, **where, "tokens": tokens, **cells, "seeds": len(entries)}))
    return pd.concat(parts, ignore_index=True)[HEAT] if parts else pd.DataFrame(columns=HEAT)


def tokens_until(generated: Sequence[Curve], update: int) -> float:
    """Mean over runs of the tokens generated by the end of `update`; a run that ended before stays at its total."""
    found = [float(np.interp(update, line.x, line.y)) for line in generated if len(line.x)]
    return float(np.mean(found)) if found else 0.0


def histograms(runs: Sequence[Run], protocol: str, size: int, width: int = 1) -> dict[int, list[NDArray[np.float64]]]:
    """Span of `width` updates -> groups by successes of each run that has groups there."""
    name = "successes" if protocol == LOGGED else "successes_root"
    found: dict[int, list[NDArray[np.float64]]] = {}
    for run in runs:
        spans: dict[int, NDArray[np.float64]] = {}
        for row in run.updates:
            counts = np.asarray(row.get(name) or [0], dtype=float)
            if counts.sum() > 0:
                counts = counts if protocol == LOGGED else reduced_histogram(counts, size)
                span = (row["update"] - 1) // width
                spans[span] = spans[span] + counts if span in spans else counts
        for span, entry in spans.items():
            found.setdefault(span, []).append(entry)
    return found
