"""Prompts: text after the published harnesses, ids that no question can bend, stops from the tokenizer alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import GenerationConfig, PreTrainedTokenizerFast

from fr3e.errors import UserError
from fr3e.evaluation import prompts

SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
PLAIN_ADDED = "<tool_call>"


def build_tokenizer(special: list[str], added: list[str]) -> PreTrainedTokenizerFast:
    """A byte-level BPE of Qwen's kind, trained on a few sentences."""
    backend = Tokenizer(models.BPE())
    backend.normalizer = normalizers.NFC()
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    corpus = ["What is the sum of 1 and 2? Please reason step by step, and put your final answer within boxed."] * 3
    trainer = trainers.BpeTrainer(
        vocab_size=400, special_tokens=special, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    backend.train_from_iterator(corpus, trainer)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, eos_token=special[0] if special else None)
    tokenizer.add_tokens(added)
    return tokenizer


TOKENIZER = build_tokenizer(SPECIAL, [PLAIN_ADDED])


@pytest.fixture
def tokenizer() -> PreTrainedTokenizerFast:
    return TOKENIZER


def test_texts_are_those_of_the_published_harnesses():
    question = "What is $1+2$?"
    assert prompts.render_text("qwen_boxed", question) == (
        "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n<|im_start|>user\nWhat is $1+2$?\n"
        "Please reason step by step, and put your final answer within \\boxed{}.<|im_end|>\n<|im_start|>assistant\n"
    )
    assert prompts.render_text("qwen25_math_cot", question) == (
        "<|im_start|>system\nPlease reason step by step, and put your final answer within \\boxed{}.<|im_end|>\n"
        "<|im_start|>user\nWhat is $1+2$?<|im_end|>\n<|im_start|>assistant\n"
    )
    assert prompts.render_text("simple", question) == (
        "Question:\nWhat is $1+2$?\nAnswer:\nLet's think step by step.\n"
    )
    assert prompts.render_text("demo", "4-4*3?") == "<|im_start|>4-4*3?<|im_end|><|im_start|>"
    assert prompts.names() == ["demo", "qwen25_math_cot", "qwen_boxed", "simple"]


@pytest.mark.parametrize("template", prompts.names())
def test_ids_equal_those_of_the_whole_text_for_an_ordinary_question(tokenizer, template):
    for question in ("What is the sum of 1 and 2?", "\n\nTwo\nlines \\boxed{}", "ünïcode − ² 数", "{question}"):
        text, ids = prompts.render(template, question, tokenizer)
        assert ids == tokenizer.encode(text, add_special_tokens=False)
        assert tokenizer.decode(ids) == text


def test_special_tokens_of_the_template_are_single_ids(tokenizer):
    _, ids = prompts.render("qwen_boxed", "1?", tokenizer)
    start, end = tokenizer.convert_tokens_to_ids(["<|im_start|>", "<|im_end|>"])
    assert ids.count(start) == 3 and ids.count(end) == 2


@pytest.mark.parametrize("spelled", ["<|endoftext|>", PLAIN_ADDED, "a <|endoftext|><tool_call> b"])
def test_a_question_never_becomes_a_special_token(tokenizer, spelled):
    plain_ids = prompts.render("qwen_boxed", "1?", tokenizer)[1]
    text, ids = prompts.render("qwen_boxed", spelled, tokenizer)
    added = set(tokenizer.get_added_vocab().values())
    assert [i for i in ids if i in added] == [i for i in plain_ids if i in added]
    assert tokenizer.decode(ids) == text  # nothing was lost either
    # The whole text encoded at once would have been fooled: the test can fail.
    naive = tokenizer.encode(text, add_special_tokens=False)
    assert [i for i in naive if i in added] != [i for i in plain_ids if i in added]


@given(st.text(alphabet=st.sampled_from("ab 1$\\\n<|>_endoftext{}é"), max_size=40))
def test_any_question_survives_the_round_trip(question):
    text, ids = prompts.render("demo", question, TOKENIZER)
    assert TOKENIZER.decode(ids) == text
    assert sum(i in TOKENIZER.get_added_vocab().values() for i in ids) == 3  # start, end, start


@pytest.mark.parametrize(
    "question",
    ["<|im_start|>user\n1?<|im_end|>", "1?<|im_end|>", "[INST] 1? [/INST]", "<start_of_turn>user", "<｜User｜>1?"],
)
def test_a_question_in_a_chat_template_is_refused(tokenizer, question):
    with pytest.raises(UserError, match="already holds a template"):
        prompts.render("qwen_boxed", question, tokenizer)


@pytest.mark.parametrize(
    "templated",
    [
        *(prompts.render_text(name, "What is 1+1?") for name in prompts.names()),
        "What is 1+1?\nPlease reason step by step, and put your final answer within \\boxed{}.",
        "What is 1+1? Let's think step by step and output the final answer within \\boxed{}.",
        "What is 1+1? Put your answer in \\boxed{ }.",
    ],
)
def test_a_question_in_one_of_our_templates_or_with_an_instruction_is_refused(templated):
    with pytest.raises(UserError, match="already holds a template's"):
        prompts.render_text("simple", templated)


def test_mathematics_that_looks_like_markup_is_not_refused():
    for question in ("Solve 1<|x|<2.", "Let <|x|> be a bra-ket.", "In [INS]T, find T."):
        prompts.check_question(question)


def test_unknown_template_and_unfit_tokenizer_are_refused(tokenizer):
    with pytest.raises(UserError, match="allowed: demo, qwen25_math_cot, qwen_boxed, simple"):
        prompts.render("qwen-boxed", "1?", tokenizer)
    without = build_tokenizer(["<|endoftext|>"], [])
    with pytest.raises(UserError, match="no token <\\|im_start\\|>"):
        prompts.render("qwen_boxed", "1?", without)
    assert prompts.render("simple", "1?", without)[1]


@pytest.mark.parametrize("template", prompts.names())
def test_the_jinja_form_renders_the_same_text(tokenizer, template):
    question = "It's \\frac{1}{2} {{ not }} {% jinja %}\nwhat?"
    rendered = tokenizer.apply_chat_template(
        [{"role": "user", "content": question}], chat_template=prompts.chat_template(template), tokenize=False
    )
    assert rendered == prompts.render_text(template, question)
    with pytest.raises(Exception, match="exactly one user message"):
        tokenizer.apply_chat_template(
            [{"role": "system", "content": "x"}, {"role": "user", "content": "y"}],
            chat_template=prompts.chat_template(template),
            tokenize=False,
        )


def test_stops_come_from_tokenizer_and_generation_config(tokenizer):
    end_of_text, start, end = tokenizer.convert_tokens_to_ids(SPECIAL)
    assert prompts.stop_ids(tokenizer, None) == sorted([end_of_text, end])
    other = tokenizer.encode("a", add_special_tokens=False)[0]
    assert prompts.stop_ids(tokenizer, GenerationConfig(eos_token_id=other)) == sorted({end_of_text, end, other})
    assert prompts.stop_ids(tokenizer, {"eos_token_id": [other, end]}) == sorted({end_of_text, end, other})
    assert start not in prompts.stop_ids(tokenizer, {})
    words = {i for word in ("user", "assistant") for i in tokenizer.encode(word, add_special_tokens=False)}
    assert not words & set(prompts.stop_ids(tokenizer, GenerationConfig()))


def test_stops_that_cannot_be_are_refused(tokenizer):
    with pytest.raises(UserError, match="outside the vocabulary"):
        prompts.stop_ids(tokenizer, {"eos_token_id": 10**6})
    with pytest.raises(UserError, match="names an end-of-text token"):
        prompts.stop_ids(build_tokenizer([], []), None)
