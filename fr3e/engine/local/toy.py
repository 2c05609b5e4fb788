"""The demo model's tokenizer and architecture: what Qwen2.5 has, at a size that a CPU trains in two minutes.

vLLM's CPU kernels need a head of 32 or 64; verl needs as many embedding rows as the tokenizer has tokens.
"""

from tokenizers.pre_tokenizers import ByteLevel
from transformers import GenerationConfig, Qwen2Config, Qwen2Tokenizer

from fr3e.config.scenario import ModelConfig, SyntheticModel
from fr3e.errors import UserError

END_OF_TEXT, START, END = SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
# Bytes are tokens, so any text can be written; the box's name is the only word. Each merge makes one more token.
MERGES = (("b", "o"), ("x", "e"), ("xe", "d"), ("bo", "xed"), ("\\", "boxed"))
MAX_PARAMETERS = 2_000_000
# ChatML reduced to its marks, so that prompts are short; the same text as the prompt template `demo` for one user message.
CHAT_TEMPLATE = (
    "{%- for message in messages -%}{{ '<|im_start|>' + message['content'] + '<|im_end|>' }}{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{ '<|im_start|>' }}{%- endif -%}"
)


def build_tokenizer(max_positions: int) -> Qwen2Tokenizer:
    """Qwen2's tokenizer class over 256 bytes, five merges and three special tokens: 264 tokens, any text fits."""
    alphabet = sorted(ByteLevel.alphabet())
    words = [*alphabet, *(left + right for left, right in MERGES)]
    tokenizer = Qwen2Tokenizer(
        vocab={word: index for index, word in enumerate(words)},
        merges=list(MERGES),
        eos_token=END,
        pad_token=END_OF_TEXT,
        model_max_length=max_positions,
        clean_up_tokenization_spaces=False,
        extra_special_tokens=[START],
    )
    tokenizer.chat_template = CHAT_TEMPLATE
    return tokenizer


def build_config(model: ModelConfig, base: SyntheticModel, tokenizer: Qwen2Tokenizer) -> Qwen2Config:
    """Qwen2 with tied embeddings in float32; sizes that vLLM's CPU kernels cannot run are refused (`UserError`)."""
    if base.hidden % base.heads or base.hidden // base.heads not in (32, 64):
        raise UserError(
            f"base.hidden {base.hidden} / base.heads {base.heads}: the head size must be 32 or 64; change hidden or heads"
        )
    if base.heads % base.kv_heads:
        raise UserError(f"base.kv_heads {base.kv_heads}: must divide base.heads {base.heads}")
    end_of_text, end = tokenizer.convert_tokens_to_ids([END_OF_TEXT, END])
    return Qwen2Config(
        vocab_size=len(tokenizer),
        hidden_size=base.hidden,
        intermediate_size=base.intermediate,
        num_hidden_layers=base.layers,
        num_attention_heads=base.heads,
        num_key_value_heads=base.kv_heads,
        max_position_embeddings=model.max_positions,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=end,
        pad_token_id=end_of_text,
        dtype="float32",
    )


def build_generation_config(tokenizer: Qwen2Tokenizer) -> GenerationConfig:
    """Plain sampling; a response ends at the end of turn or of text."""
    end_of_text, end = tokenizer.convert_tokens_to_ids([END_OF_TEXT, END])
    return GenerationConfig(
        eos_token_id=[end, end_of_text], pad_token_id=end_of_text, do_sample=True, temperature=1.0, top_p=1.0, top_k=0
    )
