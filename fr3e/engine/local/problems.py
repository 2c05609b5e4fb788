"""Problems in, prompts out: a seeded order that is a pure function of one number, the position."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from fr3e.algorithm.seeds import generator
from fr3e.errors import UserError
from fr3e.evaluation.prompts import render
from fr3e.exploration.records import Prompt

COLUMNS = ("id", "question", "gold")


@dataclass(frozen=True, slots=True)
class Problem:
    """One row of a training or benchmark parquet."""

    id: str
    question: str
    gold: str


def load_problems(source: str | Path) -> list[Problem]:
    """Rows of a parquet with the columns id, question, gold, in file order; rows with a status other than ok are left out.

    Raises `UserError` for a file that is missing, not a parquet (for example cut short), lacks a column or holds nothing.
    """
    try:
        table = pq.read_table(source)
    except FileNotFoundError as error:
        raise UserError(f"{source}: no such file; make the data first (fr3e data)") from error
    except (pa.ArrowInvalid, OSError) as error:
        raise UserError(f"{source}: not a readable parquet file, it may be cut short ({error})") from error
    if missing := [name for name in COLUMNS if name not in table.column_names]:
        raise UserError(f"{source}: no column {missing[0]!r}; found {', '.join(table.column_names)}")
    if "status" in table.column_names:
        table = table.filter(pa.compute.equal(table["status"], "ok"))
    rows = [Problem(*values) for values in zip(*(table[name].to_pylist() for name in COLUMNS), strict=True)]
    if not rows:
        raise UserError(f"{source}: no problems in it")
    if len({row.id for row in rows}) != len(rows):
        raise UserError(f"{source}: ids occur twice; each problem needs its own")
    return rows


class PromptStream:
    """Problems shuffled anew each epoch. Position p is item p mod N of epoch p div N; nothing else is state."""

    def __init__(self, problems: Sequence[Problem], template: str, tokenizer: Any, seed: str, max_tokens: int) -> None:
        self.problems = problems
        self.template = template
        self.tokenizer = tokenizer
        self.seed = seed
        self.max_tokens = max_tokens
        self._epoch = -1
        self._order: list[int] = []

    def take(self, position: int, count: int) -> tuple[list[tuple[Prompt, Problem]], int]:
        """`count` prompts from `position` on, and the position after them. Prompts longer than `max_tokens` are passed
        over; an epoch of nothing else is a `UserError`."""
        taken: list[tuple[Prompt, Problem]] = []
        start = position
        while len(taken) < count:
            if not taken and position - start >= len(self.problems):
                raise UserError(
                    f"no prompt of the training data has at most {self.max_tokens} tokens; raise rollout.max_prompt_tokens"
                )
            epoch, index = divmod(position, len(self.problems))
            position += 1
            problem = self.problems[self._shuffled(epoch)[index]]
            ids = render(self.template, problem.question, self.tokenizer)[1]
            if len(ids) <= self.max_tokens:
                taken.append((Prompt(f"{epoch}/{problem.id}", tuple(ids), problem.gold), problem))
        return taken, position

    def _shuffled(self, epoch: int) -> list[int]:
        if epoch != self._epoch:
            order = generator(self.seed, "order", epoch).permutation(len(self.problems))
            self._epoch, self._order = epoch, order.tolist()
        return self._order
