"""Which training problems a run passes over because their prompts are too long for it, said before the first update."""

from pathlib import Path

from fr3e.config.scenario import RunConfig
from fr3e.data.tokens import load_tokenizer, prompt_lengths
from fr3e.engine.local.problems import load_problems
from fr3e.errors import UserError
from fr3e.files import write_json
from fr3e.progress import log

FILE = "dropped_prompts.json"


def record_long_prompts(run: RunConfig, out: Path) -> int:
    """Count all prompts with the run's own tokenizer, write `<out>/dropped_prompts.json`, and return how many are too long.

    The file holds `template`, `max_prompt_tokens`, `problems` and `dropped` (id -> tokens). Both engines draw from the
    same stream, which passes over just these. Raises `UserError` where a question cannot be rendered or none is left.
    """
    problems, limit = load_problems(run.data), run.training.rollout.max_prompt_tokens
    questions = [problem.question for problem in problems]
    lengths = prompt_lengths(questions, run.model.template, load_tokenizer(run.base))
    dropped = {problem.id: tokens for problem, tokens in zip(problems, lengths, strict=True) if tokens > limit}
    if len(dropped) == len(problems):
        raise UserError(f"{run.data}: no prompt has at most {limit} tokens; raise rollout.max_prompt_tokens")
    counted = {"template": run.model.template, "max_prompt_tokens": limit, "problems": len(problems)}
    write_json(out / FILE, {**counted, "dropped": dropped})
    log.info(
        "%s: %d of %d training prompts have more than %d tokens and are passed over (%s)",
        *(run.run, len(dropped), len(problems), limit, out / FILE),
    )
    return len(dropped)
