"""The paper's Table 1 as data: what `fr3e report table1` sets beside our numbers, and checks of its arithmetic."""

import functools
import json
import re
from collections.abc import Iterator
from importlib import resources
from typing import Any


@functools.cache
def load() -> dict[str, Any]:
    """published.json: `source`, `problems` and `samples` per benchmark, `models` -> method -> benchmark -> per cent."""
    return json.loads((resources.files("fr3e.report") / "published.json").read_text(encoding="utf-8"))


def of_model(title: str) -> dict[str, dict[str, float]]:
    """Method -> benchmark (and `average`) -> per cent of the model with this title; empty where the paper has none.

    Capitals and punctuation do not matter: `Qwen2.5-Math-7B`, `qwen2.5-math-7b`.
    """
    return next((cells for name, cells in load()["models"].items() if _plain(name) == _plain(title)), {})


def averages() -> Iterator[tuple[str, str, float, float]]:
    """(model, method, printed average, mean of the eight printed cells) for all six averages."""
    for model, methods in load()["models"].items():
        for method, cells in methods.items():
            scores = [value for name, value in cells.items() if name != "average"]
            yield model, method, cells["average"], sum(scores) / len(scores)


def unattainable() -> list[tuple[str, str, str, float]]:
    """Printed cells (model, method, benchmark, per cent) that no whole number of right answers rounds to."""
    data = load()
    return [
        (model, method, name, value)
        for model, methods in data["models"].items()
        for method, cells in methods.items()
        for name, value in cells.items()
        if name != "average" and not attainable(value, data["problems"][name] * data["samples"][name])
    ]


def attainable(percent: float, answers: int) -> bool:
    """True when some count of `answers` rounds to `percent` with one decimal (ties may go either way)."""
    nearest = round(percent / 100 * answers)
    return any(abs(100 * count / answers - percent) <= 0.05 + 1e-9 for count in range(nearest - 1, nearest + 2))


def _plain(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower())
