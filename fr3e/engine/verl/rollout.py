"""FR3E inside verl's rollout workers: one coroutine per prompt, the same as in the local engine.

A prompt explores as soon as its own first rollouts are graded; other prompts' stages are of no concern to it. All its
requests carry its uid, by which verl's balancer sends them to one server, where the prefix cache holds their context.
What comes out is one `Exploration` per prompt, handed to the trainer through `rows`.
"""

import asyncio
import logging
import traceback
from typing import Any

import numpy as np
import ray
import torch
from omegaconf import OmegaConf
from verl.experimental.agent_loop.agent_loop import AgentLoopMetrics, AgentLoopOutput
from verl.trainer.ppo.v1 import AgentLoopManagerTQ, AgentLoopWorkerTQ
from verl.workers.rollout.llm_server import LLMServerClient

from fr3e.algorithm.entropy import topk_entropy_from_logprobs
from fr3e.config.scenario import RunConfig
from fr3e.engine.local.draws import stream_key
from fr3e.engine.verl import rows
from fr3e.engine.verl.probe import run_probe
from fr3e.engine.verl.reward import verdict_of
from fr3e.evaluation.prompts import stop_ids
from fr3e.exploration.explore import explore
from fr3e.exploration.records import Completion, Ids, Prompt, Request
from fr3e.grading.verdict import Verdict

log = logging.getLogger("fr3e")
TOP = 20
"""Log-probs per token of the approximate entropy; vLLM's own limit."""

_Base = AgentLoopWorkerTQ.__ray_metadata__.modified_class


class VerlGenerate:
    """`Generate` over verl's client: n requests of one context, sent to the server that has the prompt's cache."""

    def __init__(self, client: LLMServerClient, run: RunConfig, stops: list[int]) -> None:
        self._client, self._run, self._stops = client, run, stops
        self._exact = run.training.verl.entropy == "exact"
        self._topk = run.training.fr3e.topk_entropy_k if run.training.fr3e.anchor_score == "topk_entropy" else 0

    async def __call__(self, request: Request) -> list[Completion]:
        """n completions; each has its own seed, made from the run's seed, the request's draw and its row."""
        return list(await asyncio.gather(*(self._one(request, row) for row in range(request.n))))

    async def _one(self, request: Request, row: int) -> Completion:
        parameters: dict[str, Any] = {
            "temperature": request.temperature,
            "top_p": request.top_p,
            "top_k": -1,
            "repetition_penalty": 1.0,
            "logprobs": True,
            "max_tokens": request.max_tokens,
            "stop_token_ids": self._stops,
            # vLLM takes signed 64-bit seeds.
            "seed": stream_key(self._run.seed, f"{request.draw}|{row}") >> 1,
        }
        if self._exact:
            parameters["extra_args"] = {"fr3e_entropy": self._topk}
        context = list(request.context_ids)
        output = await self._client.generate(request.prompt_uid, prompt_ids=context, sampling_params=parameters)
        if not output.token_ids or output.log_probs is None:
            raise RuntimeError(f"vLLM ended a request of {request.prompt_uid} without a token ({output.stop_reason})")
        ids = tuple(int(token) for token in output.token_ids)
        if self._exact:
            entropies, topk = output.extra_fields["entropies"], output.extra_fields.get("topk_entropies")
        else:
            entropies = await self._approximate(request, ids)
            topk = entropies if self._topk else None
        if len(entropies) != len(ids):
            raise RuntimeError(f"{len(entropies)} entropies for {len(ids)} tokens of {request.prompt_uid}")
        return Completion(
            token_ids=ids,
            logprobs=np.asarray(output.log_probs, dtype=np.float32),
            entropies=np.array(entropies, dtype=np.float32),
            finished=ids[-1] in self._stops,
            cached_tokens=int(output.extra_fields.get("num_cached_tokens") or 0),
            topk_entropies=None if topk is None else np.array(topk, dtype=np.float32),
        )

    async def _approximate(self, request: Request, ids: Ids) -> np.ndarray:
        """Entropies [T] from the top log-probs of a second request that only reads the text; the rest is one mass.

        At temperature 1 only. A lower bound of the exact entropy; runs that use it say so in their metrics.
        """
        sequence = list(request.context_ids) + list(ids)
        k = self._topk or TOP
        # The longest sequence fills the model's positions, and vLLM insists on drawing a token: leave the last one out.
        output = await self._client.generate(
            request.prompt_uid,
            prompt_ids=sequence[:-1],
            sampling_params={"temperature": 1.0, "max_tokens": 1, "prompt_logprobs": k, "logprobs": False},
        )
        start = len(request.context_ids) - 1
        # verl shifts the list by one: entry i describes token i + 1, the last entry is a dummy.
        top = torch.tensor(output.extra_fields["prompt_logprobs"][start:-1], dtype=torch.float64)
        if len(ids) == 1:
            top = torch.empty((0, k), dtype=torch.float64)
        read = topk_entropy_from_logprobs(top).numpy()
        # The last token, an end mark or the budget's last, cannot be an anchor; it takes its predecessor's value.
        return np.append(read, read[-1] if len(read) else 0.0).astype(np.float32)


class FR3EWorker(_Base):  # type: ignore[misc, valid-type]
    """verl's rollout worker with a prompt's whole exploration in the place of its n independent rollouts."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._run = RunConfig.model_validate(OmegaConf.to_container(self.config.fr3e.run, resolve=True))
        self._stops = stop_ids(self.tokenizer, self.model_config.generation_config)
        self._generate = VerlGenerate(self.llm_client, self._run, self._stops)
        self._special = frozenset(self.tokenizer.all_special_ids) | frozenset(self._stops)

    async def _run_prompt(
        self, prompt: dict[str, Any], sampling_params: dict[str, Any], trajectory: dict[str, Any], trace: bool = False
    ) -> None:
        """Explore one prompt, or probe it, and hand the result over; the status is told last, after the data."""
        uid, partition = prompt["uid"], "val" if trajectory["validate"] else "train"
        await rows.tell(uid, partition, "running")
        try:
            subject = Prompt(uid=uid, token_ids=tuple(prompt["token_ids"]), gold=prompt["gold"])
            if trajectory["validate"]:
                result: Any = await run_probe(
                    subject, prompt["benchmark"], prompt["draw"], self._run.training, self._generate, self._grade
                )
            else:
                result = await self._explore(subject, prompt["global_steps"])
            await rows.hand_over(uid, partition, result)
        except Exception as error:
            log.exception("prompt %s failed", uid)
            reason = "".join(traceback.format_exception_only(error)).strip()
            await rows.tell(uid, partition, "failure", reason=reason[-500:])
            return
        await rows.tell(uid, partition, "finished")

    async def _explore(self, prompt: Prompt, update: int) -> Any:
        return await explore(
            prompt,
            self._run.training,
            self._generate,
            self._grade,
            special_ids=self._special,
            token_text=self._token_text,
            seed=str(self._run.seed),
            update=update,
        )

    def _token_text(self, token: int) -> str:
        return self.tokenizer.decode([token])

    async def _grade(self, prompt: Prompt, response_ids: Ids) -> Verdict:
        """Through verl's own reward workers, which decode the ids and call `reward.compute_score`."""
        output = AgentLoopOutput(
            prompt_ids=list(prompt.token_ids),
            response_ids=list(response_ids),
            response_mask=[1] * len(response_ids),
            num_turns=2,
            metrics=AgentLoopMetrics(),
        )
        facts = {"data_source": "fr3e", "reward_model": {"ground_truth": prompt.gold}, "extra_info": {}}
        await self._compute_score([output], kwargs=facts)
        return verdict_of(output.extra_fields["reward_extra_info"])


class FR3EManager(AgentLoopManagerTQ):
    """verl's manager of rollout workers, with ours."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.agent_loop_workers_class = ray.remote(FR3EWorker)
