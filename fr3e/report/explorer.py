"""The explorer: one self-contained page where a slider for K moves anchors, blocks, states, V and alpha.

It shows the published worked example and real trajectories of the scenario's runs. V and alpha are shown only where
continuations were really sampled; for other K the page says that V was not measured.
"""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fr3e.algorithm.states import answer_start
from fr3e.config.plans import ReportPlan, load_report_plan
from fr3e.files import write_text
from fr3e.report.pages import text_of
from fr3e.report.runs import Run, load_runs, of

SHOWN_PER_MODEL = 12
LARGEST_K = 16
SPECIAL = re.compile(r"<\|[^|]*\|>")

# The published teaching page's example (docs/claims.md names it): anchors end the block they stand in.
WORKED_EXAMPLE: dict[str, Any] = {
    "title": "Published worked example",
    "question": "Twelve tokens t1 to t12 with their entropies, and M = 8 continuations from four states.",
    "tokens": [f"t{i}" for i in range(1, 13)],
    "entropies": [1.2, 3.6, 0.8, 3.1, 1.9, 2.9, 0.6, 2.5, 1.4, 2.2, 0.9, 1.7],
    "in_prefix": True,
    "root": False,
    "run_k": 4,
    "measured": {"2": 3 / 8, "4": 5 / 8, "6": 6 / 8, "8": 2 / 8},
    "measured_note": "3, 5, 6 and 2 of 8 continuations were right",
    "spaced": True,
}


def write_explorer(plan: Path, out: Path) -> None:
    """Write the page; without real trajectories it holds the worked example alone and says so.

    Raises `UserError` for a broken plan or a broken line in trajectories.jsonl.
    """
    resolved = load_report_plan(plan)
    runs = load_runs(resolved)
    first = resolved.report.comparison[0]
    shown = [example()]
    for model in resolved.models:
        shown += real_trajectories(of(runs, model, first), resolved)
    write_text(out, page(shown, resolved.scenario))


def page(trajectories: Sequence[Mapping[str, Any]], scenario: str) -> str:
    """The document: template, style, script and data in one; nothing is fetched."""
    from jinja2 import Environment
    from markupsafe import Markup

    template = Environment(autoescape=True).from_string(text_of("explorer.html.jinja"))
    return template.render(
        scenario=scenario,
        real=len(trajectories) - 1,
        css=Markup(text_of("explorer.css")),
        js=Markup(text_of("explorer.js")),
        data=Markup(script_json(list(trajectories))),
    )


def script_json(value: Any) -> str:
    """JSON that cannot end or escape the script element that holds it, whatever text it carries."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def example() -> dict[str, Any]:
    """The worked example in the form that the page reads."""
    entropies = WORKED_EXAMPLE["entropies"]
    return {**WORKED_EXAMPLE, "order": ranking(entropies, [True] * len(entropies)), "min_gap": 0}


def ranking(entropies: Sequence[float], eligible: Sequence[bool]) -> list[int]:
    """Eligible positions from the highest entropy to the lowest, equal ones from the earliest on (Eq. 7)."""
    return sorted((t for t in range(len(entropies)) if eligible[t]), key=lambda t: (-entropies[t], t))


def real_trajectories(runs: Sequence[Run], plan: ReportPlan) -> list[dict[str, Any]]:
    """Base trajectories of the first seed that kept any, spread evenly over its updates.

    The rule is fixed, so that none is picked for its looks.
    """
    for run in runs:
        rows = [row for row in run.trajectories() if row.get("anchors")]
        if rows:
            step = max(1, len(rows) / SHOWN_PER_MODEL)
            picked = sorted({int(i * step) for i in range(min(SHOWN_PER_MODEL, len(rows)))})
            return [trajectory(rows[i], run, plan.models[run.model]) for i in picked]
    return []


def trajectory(row: Mapping[str, Any], run: Run, model: str) -> dict[str, Any]:
    """One row of trajectories.jsonl in the form that the page reads.

    `order` ranks the tokens that may be anchors under the run's settings; `measured` maps a prefix length to V.
    """
    settings = ((run.config or {}).get("training") or {}).get("fr3e") or {}
    tokens, entropies = list(row["tokens"]), [float(h) for h in row["entropies"]]
    end = answer_start(tokens) if settings.get("exclude_answer_span", True) else len(tokens)
    start = settings.get("skip_first", 0)
    eligible = [start <= t < end and not SPECIAL.fullmatch(token) for t, token in enumerate(tokens)]
    answer = "right" if row["reward"] > 0 else "wrong"
    question = " ".join(row["question"].split())
    return {
        "title": f"{model}, update {row['update']}: {question[:60]}{'…' if len(question) > 60 else ''} ({answer})",
        "question": row["question"],
        "gold": row["gold"],
        "reward": row["reward"],
        "run": run.tag,
        "tokens": tokens,
        "entropies": entropies,
        "order": ranking(entropies, eligible)[:LARGEST_K],
        "min_gap": settings.get("min_gap", 0),
        "in_prefix": bool(settings.get("anchor_in_prefix", False)),
        "root": True,
        "score": settings.get("anchor_score", "entropy"),
        "run_k": len(row["anchors"]),
        "anchors": list(row["anchors"]),
        "measured": {str(state["k"]): state["value"] for state in row["states"] if state.get("value") is not None},
        "alpha": {str(state["k"]): state["alpha"] for state in row["states"] if state.get("alpha") is not None},
    }
