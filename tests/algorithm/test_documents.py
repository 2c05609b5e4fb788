"""docs/algorithm.md and docs/deviations.md name what exists, and leave nothing out."""

import ast
import re
from pathlib import Path

import pytest

from fr3e.config.training import TrainingConfig

ROOT = Path(__file__).resolve().parents[2]
ALGORITHM = (ROOT / "docs" / "algorithm.md").read_text(encoding="utf-8")
DEVIATIONS = (ROOT / "docs" / "deviations.md").read_text(encoding="utf-8")


def functions(source: Path) -> set[str]:
    """Functions of a file, methods as Class.method."""
    tree = ast.parse(source.read_text(encoding="utf-8"))
    names = set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(node.name)
        if isinstance(node, ast.ClassDef):
            names |= {
                f"{node.name}.{f.name}" for f in node.body if isinstance(f, ast.FunctionDef | ast.AsyncFunctionDef)
            }
    return names


def rows() -> list[tuple[list[Path], list[str]]]:
    """(files, functions) of every row of the tables of docs/algorithm.md."""
    result = []
    for line in ALGORITHM.splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if len(cells) >= 3 and "`fr3e/" in cells[-2]:
            result.append(
                ([ROOT / name for name in re.findall(r"`([^`]+)`", cells[-2])], re.findall(r"`([^`]+)`", cells[-1]))
            )
    return result


def test_every_named_function_is_in_its_file() -> None:
    assert len(rows()) > 30
    for files, names in rows():
        there = set().union(*(functions(file) for file in files))
        assert names
        assert set(names) <= there, (files, set(names) - there)


@pytest.mark.parametrize(
    "equation", ["Eq. 1-2", "Eq. 7", "Eq. 8-10", "Eq. 12", "Eq. 13", "Eq. 14", "Eq. 15", "Eq. 16-17"]
)
def test_every_equation_has_a_row(equation: str) -> None:
    assert re.search(rf"^\| {re.escape(equation)}\b", ALGORITHM, re.MULTILINE)


def test_no_public_function_is_left_out() -> None:
    named = set(re.findall(r"`([A-Za-z0-9_.]+)`", ALGORITHM))
    for source in sorted((ROOT / "fr3e" / "algorithm").glob("*.py")):
        public = {name for name in functions(source) if not name.startswith("_") and "." not in name}
        assert public <= named, (source.name, public - named)


def switches() -> dict[str, object]:
    """All training settings as {"fr3e.num_anchors": default}."""
    return {
        f"{s}.{k}": v
        for s, section in TrainingConfig().model_dump().items()
        if isinstance(section, dict)
        for k, v in section.items()
    }


def test_every_named_switch_exists() -> None:
    table = DEVIATIONS.split("## Faults")[0]
    named = {
        n
        for line in table.splitlines()
        if line.startswith("| ")
        for n in re.findall(r"`([a-z0-9_]+\.[a-z0-9_]+)`", line)
    }
    assert len(named) > 40
    assert named <= set(switches())


def test_no_switch_of_the_method_is_left_out() -> None:
    method = {name for name in switches() if name.split(".")[0] in {"fr3e", "adv", "loss", "accum", "reward"}}
    assert {name for name in method if f"`{name}`" not in DEVIATIONS} == set()


def test_the_stated_defaults_are_the_defaults() -> None:
    """The columns 'here' and the configuration agree on the values that the table states."""
    stated = {
        "optim.lr": 1e-6,
        "accum.groups_per_update": 512,
        "accum.overflow": "carry",
        "accum.max_rounds": 30,
        "accum.reject_degenerate": True,
        "optim.minibatches": 4,
        "loss.clip_low": 0.22,
        "loss.clip_high": 0.28,
        "loss.dual_clip": None,
        "fr3e.num_anchors": 4,
        "fr3e.rollouts_per_state": 16,
        "fr3e.budget": "per_state",
        "fr3e.first_n": 4,
        "fr3e.base_select": "one_correct_else_wrong",
        "fr3e.first_filter": "all_correct",
        "fr3e.anchor_score": "entropy",
        "fr3e.anchor_in_prefix": False,
        "fr3e.include_root": True,
        "fr3e.root_alpha": "one",
        "fr3e.prev_value": "true",
        "fr3e.sharpen_power": 0.0,
        "fr3e.alpha_mode": "paper",
        "fr3e.train_first_rollouts": False,
        "fr3e.prefix_loss": False,
        "fr3e.released_row_permutation": 0,
        "fr3e.exclude_answer_span": True,
        "fr3e.min_gap": 0,
        "fr3e.skip_first": 0,
        "adv.std_norm": False,
        "adv.group": "state",
        "adv.estimator": "group_mean",
        "loss.agg": "token_mean",
        "loss.entropy_token_fraction": 1.0,
        "loss.kl": 0.0,
        "loss.entropy": 0.0,
        "reward.scope": "full",
        "rollout.temperature": 1.0,
        "optim.weight_decay": 0.01,
        "optim.clip_norm": 1.0,
    }
    found = switches()
    assert {name: found[name] for name in stated} == stated
