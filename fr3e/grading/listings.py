"""Are two lists, sets or tuples the same?

`same` compares two forms of any kind (compare.same_form).
"""

from fr3e.grading.definitions import assignment, defined
from fr3e.grading.forms import Form, Listing, Relation, Same, Value
from fr3e.grading.nodes import contains
from fr3e.grading.oracle import Oracle
from fr3e.grading.vectors import same_vector


def same_listing(answer: Form, gold: Form, same: Same, oracle: Oracle) -> bool:  # noqa: PLR0911
    """Whether `answer` is right for `gold`, of which one at least is a list, set or tuple. May raise Undecided."""
    named_a, named_g = assignment(answer), assignment(gold)
    if named_a is not None and named_g is not None:
        return _named_values(named_a, named_g, same)
    if named_a is not None and isinstance(gold, Listing) and gold.kind == "tuple" and len(named_a) == len(gold.items):
        names = list(named_a) if isinstance(answer, Relation) else sorted(named_a)
        return all(same(named_a[k], g) for k, g in zip(names, gold.items, strict=True))
    if isinstance(answer, Relation):
        side = defined(answer, same)
        return side is not None and same(side, gold)
    if not isinstance(answer, Listing) or not isinstance(gold, Listing):
        return same_vector(answer, gold, oracle)
    kinds = {answer.kind, gold.kind}
    if kinds == {"tuple"}:
        return _tuples(answer, gold, same)
    if "tuple" in kinds:
        if "set" in kinds:
            return False
        bracketed = answer if answer.kind == "tuple" else gold
        return bracketed.brackets == "()" and _in_order(answer.items, gold.items, same)
    left, right = list(answer.items), list(gold.items)
    if "set" in kinds:
        left, right = _distinct(left, same), _distinct(right, same)
    return any_order(left, right, same)


def _named_values(answer: dict[str, Form], gold: dict[str, Form], same: Same) -> bool:
    """By name; where one side has symbols and the other one words (l = 5, w = 3 and length = 5, width = 3), by place."""
    if answer.keys() == gold.keys():
        return all(same(answer[name], gold[name]) for name in gold)
    symbolic = [all(_symbol(name) for name in side) for side in (answer, gold)]
    wordy = [not any(_symbol(name) for name in side) for side in (answer, gold)]
    if not (symbolic[0] and wordy[1]) and not (wordy[0] and symbolic[1]):
        return False
    return _in_order(tuple(answer.values()), tuple(gold.values()), same)


def _symbol(name: str) -> bool:
    return len(name.lstrip("\\").split("_")[0]) == 1 or name.startswith("\\")


def _tuples(answer: Listing, gold: Listing, same: Same) -> bool:
    vectors = {"()", "<>", "[]"}
    plain = {answer.brackets, gold.brackets} <= vectors and (
        len(gold.items) > 2 or "<>" in (answer.brackets, gold.brackets)
    )
    return (answer.brackets == gold.brackets or plain) and _in_order(answer.items, gold.items, same)


def _in_order(left: tuple[Form, ...], right: tuple[Form, ...], same: Same) -> bool:
    return len(left) == len(right) and all(_entry(a, g, same) for a, g in zip(left, right, strict=True))


def _entry(answer: Form, gold: Form, same: Same) -> bool:
    if (
        isinstance(answer, Value)
        and isinstance(gold, Value)
        and (contains(answer.node, {"oo"}) or contains(gold.node, {"oo"}))
    ):
        return answer.node == gold.node
    return same(answer, gold)


def _distinct(items: list[Form], same: Same) -> list[Form]:
    kept: list[Form] = []
    for item in items:
        if not any(same(item, other) for other in kept):
            kept.append(item)
    return kept


def any_order(left: list[Form], right: list[Form], same: Same) -> bool:
    """Whether `left` and `right` hold the same forms, each as often."""
    if len(left) != len(right):
        return False
    rest = list(left)
    for wanted in right:
        match = next((i for i, item in enumerate(rest) if same(item, wanted)), None)
        if match is None:
            return False
        del rest[match]
    return True
