"""What the processes of an attempt find around them: environment variables, and the folder of the Ray that it starts."""

import os
import tempfile
from pathlib import Path
from typing import Any

from fr3e.config.scenario import RunConfig
from fr3e.errors import UserError

MARK = "FR3E_ATTEMPT"
SCRATCH = "FR3E_RAY_SCRATCH"
"""Variable with the folder for Ray's sockets and logs on this node; with_ray.sh sets it to the site's ray_scratch."""
LONGEST_SCRATCH = 42
"""A socket's path has at most 107 bytes, and Ray needs about 65 of them below its folder."""


def _variables(run: RunConfig, mark: str) -> tuple[dict[str, str], dict[str, str]]:
    """(preferred, needed): what the user's own value replaces, and what correctness needs."""
    preferred = {
        "HF_HUB_OFFLINE": "1",  # the base model is a local folder
        "TRANSFORMERS_OFFLINE": "1",
        "WANDB_MODE": "disabled",
        "RAY_USAGE_STATS_ENABLED": "0",
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_LOGGING_LEVEL": "WARNING",
        "RAY_DEDUP_LOGS": "0",
        "TOKENIZERS_PARALLELISM": "false",
    }
    # vLLM's second model runner does not call custom logits processors.
    needed = {MARK: mark, "VERL_USE_EXTERNAL_PLUGINS": "auto", "VLLM_USE_V2_MODEL_RUNNER": "0"}
    if run.training.verl.device == "cpu":
        needed |= {
            "VERL_PLATFORM": "cpu",
            "VERL_ENGINE_DEVICE": "cuda",  # verl registers its FSDP engine for cuda only; on this platform it runs on gloo
            "VLLM_TARGET_DEVICE": "cpu",
            "GLOO_SOCKET_IFNAME": "lo",
            "VLLM_HOST_IP": "127.0.0.1",
        }
        preferred |= {
            "RAY_worker_niceness": "0",
            "RAY_num_prestart_python_workers": "0",
            "OMP_NUM_THREADS": "1",
            "OMP_WAIT_POLICY": "passive",
            "VLLM_CPU_KVCACHE_SPACE": "1",
            "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        }
    return preferred, needed


def environment(run: RunConfig, mark: str) -> dict[str, str]:
    """All variables of the attempt's process, which the Ray that it starts inherits."""
    preferred, needed = _variables(run, mark)
    return preferred | dict(os.environ) | needed


def ray_init(run: RunConfig, mark: str, scratch: Path | None) -> dict[str, Any]:
    """Arguments of `ray.init`: for a Ray of its own in `scratch`, or for one that is there already (None).

    The workers of the latter inherit the variables of its daemons, not the attempt's, and it has its own cores and GPUs.
    verl lays `env_vars` over its own defaults (`run_ppo`), among them values that ours are to replace.
    """
    if scratch is None:
        preferred, needed = _variables(run, mark)
        found = environment(run, mark)
        # RAY_ variables are read by Ray's daemons and the driver.
        ours = {name: found[name] for name in [*preferred, *needed] if not name.startswith("RAY_")}
        return {"runtime_env": {"env_vars": ours}}
    verl, own = run.training.verl, {"include_dashboard": False, "_temp_dir": str(scratch)}
    if verl.device == "cuda":
        return own | {"num_cpus": 96}
    return own | {
        # Logical cores: verl's actors claim one each and would wait for ever on a small machine.
        "num_cpus": 32,
        "num_gpus": verl.nodes * verl.gpus_per_node,
        "object_store_memory": 300_000_000,
        "_node_ip_address": "127.0.0.1",
    }


def make_scratch() -> Path | None:
    """A new folder for the Ray that this attempt starts; None where it joins one (RAY_ADDRESS).

    Raises `UserError` for a place that cannot be written, or whose path is too long for Ray's sockets.
    """
    if os.environ.get("RAY_ADDRESS"):
        return None
    place = os.environ.get(SCRATCH) or tempfile.gettempdir()
    try:
        folder = Path(tempfile.mkdtemp(prefix="fr3e-", dir=Path(place).absolute()))
    except OSError as error:
        raise UserError(
            f"{place}: cannot be written ({error.strerror}); name another ray_scratch in config/site.yaml"
        ) from error
    if len(str(folder)) > LONGEST_SCRATCH:
        folder.rmdir()
        raise UserError(
            f"{place}: too long a path for Ray's sockets: {len(str(folder))} characters with the attempt's own folder, at "
            f"most {LONGEST_SCRATCH} are allowed; name a shorter ray_scratch in config/site.yaml, or set {SCRATCH}"
        )
    return folder
