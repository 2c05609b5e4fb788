"""Prompt lengths in tokens."""

from pathlib import Path
from typing import Any

from fr3e.errors import UserError
from fr3e.evaluation.prompts import render, render_text

BATCH = 1000


def load_tokenizer(name: str) -> Any:
    """A tokenizer from a folder or the hub; a `UserError` when neither has it."""
    from transformers import AutoTokenizer

    try:
        return AutoTokenizer.from_pretrained(name)
    except (OSError, ValueError) as error:
        what = "not a tokenizer" if Path(name).exists() else "neither a folder here nor to be had from the hub"
        raise UserError(f"tokenizer {name}: {what} ({str(error).splitlines()[0]})") from error


def prompt_lengths(questions: list[str], template: str, tokenizer: Any) -> list[int]:
    """Tokens of every question's prompt in a named template, as `fr3e.evaluation.prompts.render` gives them."""
    added = list(tokenizer.get_added_vocab())
    lengths: list[int] = []
    for start in range(0, len(questions), BATCH):
        batch = questions[start : start + BATCH]
        encoded = tokenizer([render_text(template, question) for question in batch], add_special_tokens=False)
        lengths.extend(
            # A question that spells one of the tokenizer's special tokens is the rare case that needs the careful way.
            len(render(template, question, tokenizer)[1]) if any(token in question for token in added) else len(ids)
            for question, ids in zip(batch, encoded["input_ids"], strict=True)
        )
    return lengths
