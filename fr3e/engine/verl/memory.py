"""Memory of one GPU in a distributed run, estimated from the configuration alone (GiB): what `fr3e plan` prints.

Training and generation take turns: while vLLM generates, FSDP holds its shards (unless they are offloaded); while FSDP
trains, vLLM sleeps and gives its memory back. So two peaks are compared with what the GPU has. The estimate leaves out
the allocator's losses and CUDA's own context (about 2 GiB); docs/verl.md gives the formulas.
"""

from typing import Any

from fr3e.config.scenario import RunConfig

GIB = 2**30
FP32, BF16 = 4, 2
LOGIT_COPIES = 3
"""Float32 copies of the logits alive at once: the logits, their log-softmax and its gradient."""
LAYER_TENSORS = 34
"""Bytes per token and hidden unit of one layer's activations in 16-bit, recomputed layer by layer (Korthikanti et al.,
"Reducing Activation Recomputation in Large Transformer Models", 2022, Eq. 1 without the attention scores)."""

# config.json of the three base models at the revisions of config/paper.yaml.
QWEN25: dict[str, dict[str, int | bool]] = {
    "Qwen/Qwen2.5-Math-7B": {
        "hidden_size": 3584,
        "num_hidden_layers": 28,
        "num_attention_heads": 28,
        "num_key_value_heads": 4,
        "intermediate_size": 18944,
        "vocab_size": 152064,
        "tie_word_embeddings": False,
    },
    "Qwen/Qwen2.5-7B": {
        "hidden_size": 3584,
        "num_hidden_layers": 28,
        "num_attention_heads": 28,
        "num_key_value_heads": 4,
        "intermediate_size": 18944,
        "vocab_size": 152064,
        "tie_word_embeddings": False,
    },
    "Qwen/Qwen2.5-32B": {
        "hidden_size": 5120,
        "num_hidden_layers": 64,
        "num_attention_heads": 40,
        "num_key_value_heads": 8,
        "intermediate_size": 27648,
        "vocab_size": 152064,
        "tie_word_embeddings": False,
    },
}


def parameters(shape: dict[str, Any]) -> int:
    """Parameters of a Qwen2 model from the numbers of its config.json (attention biases and norms included)."""
    hidden, layers, wide = shape["hidden_size"], shape["num_hidden_layers"], shape["intermediate_size"]
    kv = hidden * shape["num_key_value_heads"] // shape["num_attention_heads"]
    attention = 2 * hidden * hidden + 2 * hidden * kv + hidden + 2 * kv
    layer = attention + 3 * hidden * wide + 2 * hidden
    heads = 1 if shape.get("tie_word_embeddings") else 2
    return layers * layer + heads * shape["vocab_size"] * hidden + hidden


def checkpoint_bytes(count: int) -> int:
    """Bytes of one checkpoint over all ranks: the float32 weights of `count` parameters and AdamW's two moments of each."""
    return 3 * FP32 * count


def memory_per_gpu(run: RunConfig, model_params: dict[str, Any], gpu_gib: float = 80.0) -> dict[str, Any]:
    """Estimate in GiB per GPU. `model_params` holds the numbers of the model's config.json; `gpu_gib` is the GPU's memory.

    weights, gradients, optimiser: float32 shards over all GPUs. activations: one micro-batch of max_tokens_per_gpu tokens
    with recomputation, logits among them. kv_cache: what vLLM has left of its share after its own weights. peak_training,
    peak_generation: sums of what is alive together; fits: both are below `gpu_gib`; kv_tokens: tokens the cache holds.
    """
    training, verl = run.training, run.training.verl
    gpus = verl.nodes * verl.gpus_per_node
    count = parameters(model_params)
    compute = BF16 if verl.dtype == "bfloat16" else FP32
    weights = count * FP32 / gpus / GIB
    optimiser = 2 * count * FP32 / gpus / GIB
    reference = weights if training.loss.kl > 0 else 0.0
    # FSDP gathers one layer at a time, and the next while it computes.
    hidden, layers = model_params["hidden_size"], model_params["num_hidden_layers"]
    vocabulary, tokens = model_params["vocab_size"], verl.max_tokens_per_gpu
    layer = (count - 2 * vocabulary * hidden) / layers
    gathered = (2 * layer + vocabulary * hidden) * compute / GIB
    kept = tokens * hidden * layers * compute / GIB
    recomputed = tokens * hidden * LAYER_TENSORS * compute / BF16 / GIB
    logits = tokens * vocabulary * (compute + LOGIT_COPIES * FP32) / GIB
    activations = gathered + kept + recomputed + logits
    of_vllm = verl.gpu_memory_utilization * gpu_gib
    vllm_weights = count * compute / verl.tensor_parallel / GIB
    kv_cache = of_vllm - vllm_weights
    per_token = (
        2 * layers * hidden * model_params["num_key_value_heads"] / model_params["num_attention_heads"] * compute
    )
    resident = 0.0 if verl.offload else weights + optimiser + reference
    peak_training = 2 * weights + optimiser + reference + activations
    peak_generation = resident + of_vllm
    result = {
        "weights": weights,
        "gradients": weights,
        "optimiser": optimiser,
        "reference": reference,
        "activations": activations,
        "vllm_weights": vllm_weights,
        "kv_cache": kv_cache,
        "peak_training": peak_training,
        "peak_generation": peak_generation,
    }
    rounded: dict[str, Any] = {name: round(value, 2) for name, value in result.items()}
    return rounded | {
        "parameters": count,
        "gpu": gpu_gib,
        "kv_tokens": max(0, int(kv_cache * GIB / (per_token / verl.tensor_parallel))),
        "fits": max(peak_training, peak_generation) < gpu_gib and kv_cache > 0,
    }
