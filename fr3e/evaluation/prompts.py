"""Prompts: named template files, rendered to text and to token ids, and the tokens that end a response.

A template is `fr3e/evaluation/templates/<name>.txt`, taken character for character (the last newline too), with one
`{question}` slot. The tokenizer's own chat template and its default system prompt are never used: they differ between
models of one family. Templates after the published evaluation harnesses (SimpleRL-Zoo, Qwen2.5-Math):

- `qwen_boxed`: what SimpleRL-Zoo evaluates with; the instruction stands in the user turn.
- `qwen25_math_cot`: what Qwen2.5-Math-Instruct expects; the instruction is the system prompt.
- `simple`: plain text for base models that cannot follow a chat template.
- `demo`: the chat template of the demo's own model; the user turn is the question alone.
"""

import functools
import re
from collections.abc import Mapping
from importlib import resources
from typing import Any

from fr3e.errors import UserError

SLOT = "{question}"
# What only a rendered template holds: chat markup, or the instruction of a plain one. A question with it would be
# templated, or instructed, twice.
TEMPLATED = re.compile(
    r"<\|(?:im_start|im_end|start_header_id|end_header_id|eot_id|user|assistant|system|end)\|>"
    r"|<｜(?:User|Assistant)｜>|</?start_of_turn>|<end_of_turn>|\[/?INST\]|<</?SYS>>"
    r"|(?:Let['’]s think|Please reason) step by step|answer (?:with)?in \\boxed\{\s*\}"
)
SPECIAL_IN_TEMPLATE = re.compile(r"<\|[a-zA-Z_]+\|>")
# Tokens with which a chat model closes its turn or its text; they count only where the tokenizer has them as one token.
END_OF_TURN = ("<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<end_of_turn>", "</s>")


def names() -> list[str]:
    """Names of the templates there are, sorted."""
    folder = resources.files("fr3e.evaluation") / "templates"
    return sorted(entry.name.removesuffix(".txt") for entry in folder.iterdir() if entry.name.endswith(".txt"))


@functools.lru_cache
def template_text(template: str) -> str:
    """The template file's text, with its `{question}` slot; an unknown name is a `UserError` that lists the known ones."""
    if template not in names():
        raise UserError(f"prompt template {template!r}: unknown; allowed: {', '.join(names())}")
    text = (resources.files("fr3e.evaluation") / "templates" / f"{template}.txt").read_text(encoding="utf-8")
    if text.count(SLOT) != 1:
        raise UserError(f"prompt template {template!r}: has {text.count(SLOT)} {SLOT} slots, exactly 1 is allowed")
    return text


def check_question(question: str) -> None:
    """Refuse (`UserError`) a question that already holds a template's markup or instruction: it would hold it twice."""
    found = TEMPLATED.search(question)
    if found:
        raise UserError(
            f"question {question[:60]!r}: already holds a template's {found.group()!r} at character {found.start()}; "
            "give the bare question, the template is applied here"
        )


def render_text(template: str, question: str) -> str:
    """The prompt's text for the bare `question`; outer spaces (not newlines) are stripped, as the harnesses do."""
    check_question(question)
    head, tail = template_text(template).split(SLOT)
    return f"{head}{question}{tail}".strip(" ")


def render(template: str, question: str, tokenizer: Any) -> tuple[str, list[int]]:
    """Render the bare `question` into `(text, token ids)` with a named template.

    The template's special tokens become their ids. The question's text never does, whatever it spells: between two
    special tokens of the template the text is encoded as one piece with the tokenizer's added tokens switched off, so
    for ordinary questions the ids equal those of encoding the whole text at once. No token is added in front.

    Raises `UserError` for an unknown template, a question with a template's text, a tokenizer that lacks one of the
    template's special tokens, or a tokenizer without the `tokenizers` back end.
    """
    text = render_text(template, question)
    if not hasattr(tokenizer, "backend_tokenizer"):
        raise UserError(f"{type(tokenizer).__name__}: not a fast tokenizer; give one that has a tokenizer.json")
    added = _added(tokenizer)
    ids: list[int] = []
    for position, piece in enumerate(_pieces(template, text, tuple(added))):
        if position % 2:
            ids.append(added[piece])
        elif piece:
            ids.extend(_plain(piece, tokenizer, added))
    return text, ids


def _added(tokenizer: Any) -> dict[str, int]:
    return {str(token): int(index) for token, index in tokenizer.get_added_vocab().items()}


def _pieces(template: str, text: str, added: tuple[str, ...]) -> list[str]:
    """Cut the rendered text at the special tokens that the template itself holds, never at those of the question.

    The pieces alternate: text (perhaps empty), special token, text, and so on.
    """
    raw_head, raw_tail = template_text(template).split(SLOT)
    for token in SPECIAL_IN_TEMPLATE.findall(raw_head + raw_tail):
        if token not in added:
            raise UserError(
                f"prompt template {template!r}: the tokenizer has no token {token}; choose another template"
            )
    if not added:
        return [text]
    cut = re.compile("(" + "|".join(re.escape(token) for token in sorted(added, key=len, reverse=True)) + ")")
    head, tail = cut.split(raw_head.lstrip(" ")), cut.split(raw_tail.rstrip(" "))
    inner = text[len("".join(head)) : len(text) - len("".join(tail))]
    return [*head[:-1], head[-1] + inner + tail[0], *tail[1:]]


def _plain(text: str, tokenizer: Any, added: Mapping[str, int]) -> list[int]:
    """Ids of `text` with no added token recognised in it."""
    if not any(token in text for token in added):
        return list(tokenizer.encode(text, add_special_tokens=False))
    # The library's `split_special_tokens` still matches added tokens that are not marked special (Qwen's tool and
    # fill-in-the-middle marks), so the model of the tokenizer is asked directly.
    backend = tokenizer.backend_tokenizer
    normalised = backend.normalizer.normalize_str(text) if backend.normalizer else text
    words = backend.pre_tokenizer.pre_tokenize_str(normalised) if backend.pre_tokenizer else [(normalised, None)]
    return [token.id for word, _ in words for token in backend.model.tokenize(word)]


def chat_template(template: str) -> str:
    """The named template as a Jinja chat template, for engines that call `apply_chat_template` themselves.

    It takes exactly one user message and renders the same text as `render_text`.
    """
    head, tail = (_jinja_literal(part) for part in template_text(template).split(SLOT))
    return (
        "{%- if messages | length != 1 or messages[0]['role'] != 'user' -%}"
        "{{ raise_exception('this template takes exactly one user message, the bare question') }}"
        "{%- endif -%}"
        f"{{{{ {head} }}}}{{{{ messages[0]['content'] }}}}{{{{ {tail} }}}}"
    )


def _jinja_literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n") + "'"


def stop_ids(tokenizer: Any, generation_config: Any) -> list[int]:
    """Ids that end a response, sorted: end of text by tokenizer and generation config, and the end-of-turn tokens it has.

    `generation_config` is a `GenerationConfig`, a mapping or None; its `eos_token_id` may be an int, a list or absent.
    Plain words are never stops (a correct solution may say "user"), and no path or model name is looked at.
    Raises `UserError` when nothing ends a response or an id lies outside the vocabulary.
    """
    added = _added(tokenizer)
    found = {added[token] for token in END_OF_TURN if token in added}
    if isinstance(generation_config, Mapping):
        configured = generation_config.get("eos_token_id")
    else:
        configured = getattr(generation_config, "eos_token_id", None)
    for value in (tokenizer.eos_token_id, configured):
        if value is not None:
            found.update(int(index) for index in (value if isinstance(value, list | tuple) else [value]))
    outside = sorted(index for index in found if not 0 <= index < len(tokenizer))
    if outside:
        raise UserError(
            f"stop tokens {outside}: outside the vocabulary of {len(tokenizer)} tokens; mend generation_config"
        )
    if not found:
        raise UserError("neither the tokenizer nor the generation config names an end-of-text token; set eos_token")
    return sorted(found)
