"""The runs a report is made from, as they lie on disk. A run without metrics.jsonl counts as not run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fr3e
from fr3e.config.plans import ReportPlan
from fr3e.errors import UserError
from fr3e.files import read_json, read_jsonl, read_yaml

Row = Mapping[str, Any]
ROOT = Path(fr3e.__file__).resolve().parent.parent


@dataclass(frozen=True, slots=True)
class Run:
    """One training run: `rows` are metrics.jsonl (docs/metrics.md), row 0 the probe before training where there is one."""

    tag: str
    model: str
    method: str
    seed: int
    folder: Path
    rows: tuple[Row, ...]
    trained: Row | None
    config: Row | None

    @property
    def updates(self) -> tuple[Row, ...]:
        """The rows of real updates, without the probe before training."""
        return tuple(row for row in self.rows if row["update"] > 0)

    def trajectories(self) -> list[dict[str, Any]]:
        """Rows of trajectories.jsonl; an empty list where the run kept none."""
        path = self.folder / "trajectories.jsonl"
        return list(read_jsonl(path)) if path.is_file() else []


def load_runs(plan: ReportPlan, methods: Sequence[str] | None = None) -> list[Run]:
    """The plan's runs that have rows in metrics.jsonl, of `methods` (default: those of Table 1)."""
    wanted = plan.methods if methods is None else methods
    runs = []
    for entry in plan.evaluated:
        if entry.run is None or entry.seed is None or entry.method not in wanted:
            continue
        folder = Path(entry.run)
        metrics = folder / "metrics.jsonl"
        rows = tuple(read_jsonl(metrics)) if metrics.is_file() else ()
        if not rows:
            continue
        for number, row in enumerate(rows, start=1):
            if not isinstance(row.get("update"), int):
                raise UserError(
                    f"{metrics}:{number}: no whole number under 'update'; docs/metrics.md lists the columns"
                )
        runs.append(
            Run(
                tag=entry.tag,
                model=entry.model,
                method=entry.method,
                seed=entry.seed,
                folder=folder,
                rows=rows,
                trained=read_json(folder / "trained.json", "seconds") if (folder / "trained.json").is_file() else None,
                config=read_yaml(folder / "run.yaml") if (folder / "run.yaml").is_file() else None,
            )
        )
    return runs


def of(runs: Sequence[Run], model: str, method: str) -> list[Run]:
    """The runs of one model and method, by seed."""
    return sorted((run for run in runs if run.model == model and run.method == method), key=lambda run: run.seed)


def hardware_words(value: Any) -> str:
    """The hardware of trained.json or a manifest in words: "2 cores of Intel Xeon, 16 GiB"; text stays as it is."""
    if not isinstance(value, dict):
        return str(value or "")
    gpus = value.get("gpus") or []
    parts = [
        f"{len(gpus)} × {gpus[0]}" if gpus else "",
        " of ".join(
            filter(None, [f"{value['cores']} cores" if value.get("cores") else "", value.get("processor", "")])
        ),
        f"{value['memory_gib']:g} GiB" if value.get("memory_gib") else "",
    ]
    return ", ".join(filter(None, parts))


TITLES = {
    "fr3e": "FR3E",
    "grpo_pp": "GRPO++",
    "grpo": "GRPO",
    "base": "Base model",
    "vineppo": "VinePPO",
    "grpo_pp_n4": "GRPO++, n = 4",
    "grpo_pp_token_matched": "GRPO++, FR3E's tokens",
    "fr3e_per_prompt_budget": "FR3E, 16 rollouts per prompt",
    "fr3e_token_matched": "FR3E, GRPO++'s tokens",
    "entropy_tokens_80_20": "GRPO++, top 20 % of tokens",
}
for _letter in "km":
    for _n in (1, 2, 4, 8, 16):
        TITLES[f"{_letter}{_n}"] = f"{_letter.upper()} = {_n}"
        TITLES[f"{_letter}{_n}_same_prompts"] = f"{_letter.upper()} = {_n}, FR3E's prompts"


def method_title(method: str) -> str:
    """Name of an arm in tables and figures."""
    return TITLES.get(method, method.replace("_", " "))
