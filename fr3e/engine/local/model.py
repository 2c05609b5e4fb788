"""A small Qwen2 as plain matrix products: the forward pass that generation and the update share on the CPU.

The weights stay in the transformers module; here they are only regrouped (q, k, v as one matrix, gate and up as one),
under autograd where gradients are wanted. Rotary embedding needs x and its half-rotated copy; the copy comes out of the
same matrix product, from rows of the weight that are permuted and signed beforehand.

Rows are packed: N tokens of any number of sequences stand one under the other, [N, hidden], and only `attend`, which
the caller gives, knows which of them see each other.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

Attend = Callable[[int, Tensor, Tensor, Tensor], Tensor]
"""(layer, q [N, heads, D], k [N, kv_heads, D], v [N, kv_heads, D]) -> [N, heads * D]; q carries the 1/sqrt(D)."""

FAST_PARAMETERS = 50_000_000


@dataclass(frozen=True, slots=True)
class Layer:
    """One decoder layer; matrices are [in, out]."""

    norm: Tensor
    qkv: Tensor
    qkv_bias: Tensor
    out: Tensor
    mlp_norm: Tensor
    gate_up: Tensor
    down: Tensor


@dataclass(frozen=True, slots=True)
class Weights:
    """The regrouped weights and rotary tables [positions, (heads + kv_heads) * D]."""

    embedding: Tensor
    layers: tuple[Layer, ...]
    norm: Tensor
    head: Tensor
    cos: Tensor
    sin: Tensor
    heads: int
    kv_heads: int
    head_dim: int
    eps: float


def is_fast(module: Any, device: torch.device) -> bool:
    """Whether `regroup` knows this architecture and the plain form pays: a small fp32 Qwen2 on the CPU."""
    config = module.config
    rope = getattr(config, "rope_parameters", None) or {}
    return (
        device.type == "cpu"
        and config.model_type == "qwen2"
        and config.hidden_act == "silu"
        and not config.use_sliding_window
        and rope.get("rope_type", "default") == "default"
        and all(parameter.dtype == torch.float32 for parameter in module.parameters())
        and sum(parameter.numel() for parameter in module.parameters()) <= FAST_PARAMETERS
    )


def rotary_tables(module: Any) -> tuple[Tensor, Tensor]:
    """cos and sin [positions, D], as transformers computes them from the model's rope settings."""
    positions = torch.arange(module.config.max_position_embeddings)[None]
    cos, sin = module.model.rotary_emb(torch.zeros(1, 1, 1), positions)
    return cos[0], sin[0]


def regroup(module: Any, tables: tuple[Tensor, Tensor]) -> Weights:
    """Views and concatenations of a Qwen2ForCausalLM's parameters; differentiable where gradients are enabled."""
    config = module.config
    heads, kv_heads = config.num_attention_heads, config.num_key_value_heads
    dim = getattr(config, "head_dim", None) or config.hidden_size // heads
    scaled = torch.cat([torch.full((heads * dim,), dim**-0.5), torch.ones(kv_heads * dim)])
    cos, sin = (table.repeat(1, heads + kv_heads) * scaled for table in tables)
    layers = []
    for layer in module.model.layers:
        attention, mlp = layer.self_attn, layer.mlp
        qk = torch.cat([attention.q_proj.weight, attention.k_proj.weight])
        qk_bias = torch.cat([attention.q_proj.bias, attention.k_proj.bias])
        layers.append(
            Layer(
                norm=layer.input_layernorm.weight,
                qkv=torch.cat([qk, _half_rotated(qk, dim), attention.v_proj.weight]).t().contiguous(),
                qkv_bias=torch.cat([qk_bias, _half_rotated(qk_bias, dim), attention.v_proj.bias]),
                out=attention.o_proj.weight.t(),
                mlp_norm=layer.post_attention_layernorm.weight,
                gate_up=torch.cat([mlp.gate_proj.weight, mlp.up_proj.weight]).t().contiguous(),
                down=mlp.down_proj.weight.t(),
            )
        )
    return Weights(
        module.model.embed_tokens.weight,
        tuple(layers),
        module.model.norm.weight,
        module.lm_head.weight.t(),
        cos,
        sin,
        heads,
        kv_heads,
        dim,
        config.rms_norm_eps,
    )


def _half_rotated(rows: Tensor, dim: int) -> Tensor:
    """Rows of the weight (or bias) that yield rotate_half(x) = (-x2, x1) of every head of size `dim`."""
    first, second = rows.unflatten(0, (-1, 2, dim // 2)).unbind(1)
    return torch.stack([-second, first], 1).flatten(0, 2)


def hidden_states(weights: Weights, ids_N: Tensor, positions_N: Tensor, attend: Attend) -> Tensor:
    """Final hidden states [N, hidden] of packed tokens at their positions."""
    x = F.embedding(ids_N, weights.embedding)
    size = x.shape[-1:]
    qk_width = (weights.heads + weights.kv_heads) * weights.head_dim
    q_width = weights.heads * weights.head_dim
    cos, sin = weights.cos[positions_N], weights.sin[positions_N]
    for index, layer in enumerate(weights.layers):
        h = F.rms_norm(x, size, layer.norm, weights.eps)
        qkv = torch.addmm(layer.qkv_bias, h, layer.qkv)
        # split, not slices: the gradient of a slice is a whole matrix of zeros.
        qk, half_rotated, v = qkv.split((qk_width, qk_width, weights.kv_heads * weights.head_dim), 1)
        rotated = torch.addcmul(qk * cos, half_rotated, sin)
        q, k = rotated.unflatten(1, (-1, weights.head_dim)).split((weights.heads, weights.kv_heads), 1)
        v = v.unflatten(1, (-1, weights.head_dim))
        x = torch.addmm(x, attend(index, q, k, v).reshape(-1, q_width), layer.out)
        h = F.rms_norm(x, size, layer.mlp_norm, weights.eps)
        gate, up = (h @ layer.gate_up).chunk(2, -1)
        x = torch.addmm(x, F.silu(gate) * up, layer.down)
    return F.rms_norm(x, size, weights.norm, weights.eps)
