"""A real policy small enough for exact arithmetic: the next token's distribution depends on the last token alone.

It fulfils `Generate` with exact log-probs and entropies, and its table of logits can be trained.
"""

import math

import numpy as np
import torch

from fr3e.algorithm.seeds import generator
from fr3e.exploration.records import Completion, Prompt, Request
from fr3e.grading.verdict import Verdict

END = 0
SPECIAL = frozenset({END})


def token_text(token: int) -> str:
    """Letters; token 1 ends a line."""
    return {END: "<end>", 1: "\n"}.get(token, chr(96 + token))


class MarkovPolicy:
    """softmax(table[last token]) over `vocabulary` tokens, of which 0 ends a response."""

    def __init__(self, vocabulary: int = 12, seed: int = 0, end_logit: float = -1.0) -> None:
        rng = np.random.default_rng(seed)
        self.table = torch.tensor(rng.normal(0.0, 1.5, (vocabulary, vocabulary)), dtype=torch.float64)
        self.table[:, END] = end_logit
        self.calls: list[Request] = []

    def logprobs(self, temperature: float = 1.0) -> np.ndarray:
        """Log-probs [V, V] of every token after every token, by math's functions: the same on every processor."""
        scaled = [[x / temperature for x in row] for row in self.table.tolist()]
        norms = [math.log(math.fsum(math.exp(x) for x in row)) for row in scaled]
        return np.array([[x - norm for x in row] for row, norm in zip(scaled, norms, strict=True)])

    def sample(self, logprobs_VV: np.ndarray, last: int, draw: str, row: int, max_tokens: int) -> Completion:
        """One completion; token t of (draw, row) is fixed by one uniform number, whatever else is drawn."""
        p_VV = np.array([[math.exp(x) for x in row] for row in logprobs_VV.tolist()])
        cumulative_VV, entropy_V = p_VV.cumsum(-1), -(p_VV * logprobs_VV).sum(-1)
        uniform = generator(draw, row).random(max_tokens)
        ids: list[int] = []
        logprobs, entropies = [], []
        for t in range(max_tokens):
            token = min(int(np.searchsorted(cumulative_VV[last], uniform[t], side="right")), len(entropy_V) - 1)
            ids.append(token)
            logprobs.append(logprobs_VV[last, token])
            entropies.append(entropy_V[last])
            if token == END:
                break
            last = token
        as_floats = [np.array(values, dtype=np.float32) for values in (logprobs, entropies)]
        return Completion(tuple(ids), *as_floats, finished=bool(ids) and ids[-1] == END)

    async def __call__(self, request: Request) -> list[Completion]:
        self.calls.append(request)
        logprobs_VV, last = self.logprobs(request.temperature), request.context_ids[-1]
        return [self.sample(logprobs_VV, last, request.draw, row, request.max_tokens) for row in range(request.n)]


async def grade(prompt: Prompt, response_ids: tuple[int, ...]) -> Verdict:
    """Right when the response's tokens sum to a multiple of the prompt's gold."""
    return Verdict("correct" if sum(response_ids) % int(prompt.gold) == 0 else "wrong", None, "sum")


def prompts(count: int, gold: int = 3, start: int = 0) -> list[Prompt]:
    """Different prompts whose last token differs as well."""
    return [Prompt(f"0-{i:04d}", (2 + i % 7, 3 + i % 5), str(gold)) for i in range(start, start + count)]
