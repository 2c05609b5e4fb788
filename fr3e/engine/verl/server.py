"""verl's vLLM server with entropies beside the tokens, registered under verl's own name "vllm".

`rollout.name` stays "vllm", so that every test of that name in verl goes on to hold.
"""

from typing import Any

import numpy as np
import ray
from verl.workers.rollout.replica import RolloutReplicaRegistry, TokenOutput
from verl.workers.rollout.vllm_rollout.vllm_async_server import vLLMHttpServer, vLLMReplica

EXTENSION = "fr3e.engine.verl.entropy_probe.FR3EWorkerExtension"
PROBE = "fr3e.engine.verl.entropy_probe:EntropyProbe"


class FR3EHttpServer(vLLMHttpServer):
    """Answers a request whose `extra_args` hold `fr3e_entropy` with entropies of each token (and top-k entropies)."""

    async def generate(
        self, prompt_ids: list[int], sampling_params: dict[str, Any], request_id: str, **kwargs: Any
    ) -> TokenOutput:
        """As verl's; `extra_fields["entropies"]` and `["topk_entropies"]` are float32 arrays as long as the tokens.

        `extra_args["fr3e_entropy"]` is the k of the top-k entropy, 0 for none. Raises `RuntimeError` where vLLM did
        not call the probe, rather than hand out an approximation.
        """
        extra = dict(sampling_params.get("extra_args") or {})
        topk = extra.pop("fr3e_entropy", None)
        if topk is None:
            return await super().generate(prompt_ids, sampling_params, request_id, **kwargs)
        extra |= {"entropy_key": request_id, "entropy_topk": int(topk)}
        length = 0
        try:
            output = await super().generate(prompt_ids, sampling_params | {"extra_args": extra}, request_id, **kwargs)
            length = len(output.token_ids)
        finally:
            found = (await self.engine.collective_rpc("pop_entropies", args=(request_id, length)))[0]
        if length and found is None:
            raise RuntimeError(
                "vLLM handed no logits to the entropy probe (its V2 model runner does not call it); "
                "set VLLM_USE_V2_MODEL_RUNNER=0, or train.verl.entropy: topk for labelled approximate entropies"
            )
        values, topk_values = found or (b"", b"")
        output.extra_fields["entropies"] = np.frombuffer(values, dtype=np.float32)
        if topk:
            output.extra_fields["topk_entropies"] = np.frombuffer(topk_values, dtype=np.float32)
        return output

    def _get_worker_extension_cls(self) -> str:
        return EXTENSION


class FR3EReplica(vLLMReplica):
    """A replica whose servers are ours."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.server_class = ray.remote(FR3EHttpServer)


def register() -> None:
    """Make verl build our replicas for `rollout.name: vllm`; called in the process that builds them."""
    RolloutReplicaRegistry.register("vllm", lambda: FR3EReplica)
