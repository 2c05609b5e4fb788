"""Overlap by three methods: small sets counted by hand, the index against the plain definition."""

from hypothesis import given
from hypothesis import strategies as st

from fr3e.data.normalise import question_key, question_tokens
from fr3e.data.overlap import Index, count_found, ngrams

QUESTION = "Find the number of ways in which nine people can sit around a table."
# 15 tokens: find the number of ways in which nine people can sit around a table -> 14 words, so 7 grams of 8.


def find(benchmark: str, training: str) -> dict[str, bool]:
    index = Index()
    index.add("b:0:x", benchmark)
    return {method: bool(found) for method, found in index.find(training, question_key(training)).items()}


def test_exact_latex_and_ngrams():
    assert find(QUESTION, QUESTION) == {"exact": True, "latex": True, "ngram": True}
    assert find(QUESTION, QUESTION.replace("nine", "$nine$")) == {"exact": False, "latex": True, "ngram": True}
    assert find(QUESTION, "We want to " + QUESTION) == {"exact": False, "latex": False, "ngram": True}
    assert find(QUESTION, "What is two plus two?") == {"exact": False, "latex": False, "ngram": False}


def test_the_edge_of_containment():
    words = question_tokens(QUESTION)
    assert len(ngrams(words)) == 7
    # 0.6 * 7 = 4.2: the first 12 words share 5 grams (found), the first 11 share 4 (not found).
    assert find(QUESTION, " ".join(words[:12]))["ngram"]
    assert not find(QUESTION, " ".join(words[:11]))["ngram"]


def test_short_questions_have_no_ngrams():
    assert find("Simplify 2+2.", "Simplify 2+2.") == {"exact": True, "latex": True, "ngram": False}


def test_counts_are_of_distinct_benchmark_questions():
    index = Index()
    index.add("one:0:x", QUESTION)
    index.add("two:0:x", QUESTION)
    found = [("train", index.find(QUESTION, question_key(QUESTION)))] * 3
    assert count_found(found) == {"train": {name: {"exact": 1, "latex": 1, "ngram": 1} for name in ("one", "two")}}


SENTENCE = st.lists(st.sampled_from(["a", "b", "c", "d", "e"]), max_size=24).map(" ".join)


@given(st.lists(SENTENCE, min_size=1, max_size=4, unique=True), SENTENCE)
def test_the_index_agrees_with_the_definition(benchmark, training):
    index = Index()
    for number, question in enumerate(benchmark):
        index.add(f"b:{number}:x", question)
    own = ngrams(question_tokens(training))
    expected = []
    for number, question in enumerate(benchmark):
        grams = ngrams(question_tokens(question))
        if grams and len(grams & own) / len(grams) >= 0.6 - 1e-12:
            expected.append(f"b:{number}:x")
    assert index.find(training, question_key(training))["ngram"] == sorted(expected)
