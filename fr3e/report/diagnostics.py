"""Diagnostics of FR3E's exploration: values by state, alpha and its noise, anchors. Data here, drawing in figures_states."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fr3e.report.curves import mean_interval
from fr3e.report.runs import Row, Run, of

ALPHA_EDGES = np.linspace(np.log(0.36), np.log(2.72), 21)
PARTS = {"first fifth": (0.0, 0.2), "last fifth": (0.8, 1.0)}


def part_rows(run: Run, part: str) -> tuple[Row, ...]:
    """The run's updates in a part of training, at least one row of each part."""
    rows = run.updates
    low, high = PARTS[part]
    size = max(1, round(len(rows) * (high - low)))
    return rows[:size] if low == 0 else rows[-size:]


def pooled_values(rows: Sequence[Row]) -> dict[int, float]:
    """Mean V(S_j) per state index j, weighted by the number of states behind each update's mean."""
    totals: dict[int, list[float]] = {}
    for row in rows:
        for name, value in row.items():
            if name.startswith("value/state"):
                j = int(name.removeprefix("value/state"))
                count = row.get(f"value_count/state{j}", 0)
                entry = totals.setdefault(j, [0.0, 0.0])
                entry[0] += value * count
                entry[1] += count
    return {j: total / count for j, (total, count) in sorted(totals.items()) if count}


def values_table(runs: Sequence[Run], models: Sequence[str], methods: Sequence[str], confidence: float) -> pd.DataFrame:
    """V(S_j) against j at the start and the end of training, mean and interval over seeds.

    Columns: model, method, part, state, mean, low, high, seeds.
    """
    records = []
    for model in models:
        for method in methods:
            for part in PARTS:
                pooled = [pooled_values(part_rows(run, part)) for run in of(runs, model, method) if run.updates]
                for j in sorted({j for values in pooled for j in values}):
                    found = np.asarray([values[j] for values in pooled if j in values])
                    mean, low, high = mean_interval(found, confidence)
                    records.append((model, method, part, j, mean, np.clip(low, 0, 1), np.clip(high, 0, 1), len(found)))
    return pd.DataFrame(records, columns=["model", "method", "part", "state", "mean", "low", "high", "seeds"])


@dataclass(frozen=True, slots=True)
class Noise:
    """Spread of delta_j = V_j - V_{j-1} and how much of it the sampling of M continuations alone explains."""

    delta_std: float
    noise: float
    share: float


def noise_share(rows: Sequence[Row]) -> Noise | None:
    """Share of Var(delta) that its standard error explains, over all updates; None without states after the root.

    share = mean(noise^2) / mean(std^2), at most 1, with `noise` an update's mean standard error of delta. The mean
    square is at least the square of the mean, and the plug-in error at V = 0 or 1 is 0, so the true share is larger.
    """
    pairs = [
        (row["delta_noise"], row["delta_std"])
        for row in rows
        if row.get("delta_noise") is not None and row.get("delta_std") is not None
    ]
    if not pairs:
        return None
    noise, spread = np.sqrt(np.mean(np.square(np.asarray(pairs, dtype=float)), axis=0))
    return Noise(float(spread), float(noise), float(min(1.0, (noise / spread) ** 2)) if spread > 0 else 1.0)


def alpha_table(runs: Sequence[Run], models: Sequence[str], methods: Sequence[str]) -> pd.DataFrame:
    """Alpha's histogram over all updates and seeds, with the shares that noise alone would give.

    Columns: model, method, low, high (edges of alpha), share, noise_only (normal around alpha = 1 with the delta's
    standard error), noise_share (see `noise_share`), seeds.
    """
    from scipy.stats import norm

    parts = []
    for model in models:
        for method in methods:
            chosen = of(runs, model, method)
            rows = [row for run in chosen for row in run.updates]
            counts = pooled_histogram(rows, "alpha/histogram")
            noise = noise_share(rows)
            if counts is None or noise is None:
                continue
            expected = np.diff(norm.cdf(ALPHA_EDGES, scale=max(noise.noise, 1e-9)))
            parts.append(
                pd.DataFrame(
                    {
                        "model": model,
                        "method": method,
                        "low": np.exp(ALPHA_EDGES[:-1]),
                        "high": np.exp(ALPHA_EDGES[1:]),
                        "share": counts / counts.sum(),
                        "noise_only": expected,
                        "noise_share": noise.share,
                        "seeds": len(chosen),
                    }
                )
            )
    columns = ["model", "method", "low", "high", "share", "noise_only", "noise_share", "seeds"]
    return pd.concat(parts, ignore_index=True)[columns] if parts else pd.DataFrame(columns=columns)


def pooled_histogram(rows: Sequence[Row], name: str) -> NDArray[np.float64] | None:
    """Sum of a histogram column over rows; None where it is absent or empty."""
    found = [np.asarray(row[name], dtype=float) for row in rows if row.get(name)]
    total = np.sum(found, axis=0) if found else np.zeros(1)
    return total if total.sum() > 0 else None


def anchor_tables(
    runs: Sequence[Run], models: Sequence[str], methods: Sequence[str], top: int = 12
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Where anchors fall, and the commonest anchor tokens, over all updates and seeds.

    First table: model, method, low, high (position / base length), share, seeds. Second: model, method, token, count,
    share (of the anchors that are among an update's ten commonest).
    """
    positions, tokens = [], []
    for model in models:
        for method in methods:
            chosen = of(runs, model, method)
            rows = [row for run in chosen for row in run.updates]
            counts = pooled_histogram(rows, "anchor/histogram")
            if counts is not None:
                edges = np.linspace(0, 1, len(counts) + 1)
                positions += [
                    (model, method, low, high, share, len(chosen))
                    for low, high, share in zip(edges[:-1], edges[1:], counts / counts.sum(), strict=True)
                ]
            tokens += [(model, method, *entry) for entry in commonest(rows, top)]
    return (
        pd.DataFrame(positions, columns=["model", "method", "low", "high", "share", "seeds"]),
        pd.DataFrame(tokens, columns=["model", "method", "token", "count", "share"]),
    )


def commonest(rows: Sequence[Mapping[str, object]], top: int) -> list[tuple[str, int, float]]:
    """(token, count, share) of the anchor tokens named most often, ties by text."""
    total: Counter[str] = Counter()
    for row in rows:
        counts = row.get("anchor/tokens")
        if isinstance(counts, dict):
            total.update(counts)
    ranked = sorted(total.items(), key=lambda item: (-item[1], item[0]))[:top]
    whole = sum(total.values())
    return [(token, count, count / whole) for token, count in ranked]
