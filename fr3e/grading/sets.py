"""Sets of numbers as readers meet them: intervals, unions, what is left without some points or intervals."""

import contextlib

from fr3e.grading.forms import EVERYTHING, Form, Listing, Region, Relation, Span, Value
from fr3e.grading.listings import any_order
from fr3e.grading.nodes import Node
from fr3e.grading.numeric import NoValue
from fr3e.grading.oracle import Oracle
from fr3e.grading.tokens import Unreadable
from fr3e.grading.values import same_value


def plain(form: Form) -> Node:
    if isinstance(form, Value):
        return form.node
    raise Unreadable("a single value was expected")


def finite_points(form: Form) -> list[Node]:
    if isinstance(form, Listing) and form.kind in ("set", "list"):
        return [plain(item) for item in form.items]
    if isinstance(form, Value):
        return [form.node]
    raise Unreadable("what is taken away is no finite set")


def as_region(form: Form) -> Region:
    """Intervals and finite sets as a region. Raises Unreadable for anything else."""
    if isinstance(form, Region):
        return form
    if isinstance(form, Listing) and form.kind == "tuple" and len(form.items) == 2 and "<" not in form.brackets:
        low, high = (plain(item) for item in form.items)
        return Region((Span(low, high, (form.brackets[0] == "[", form.brackets[1] == "]")),))
    if isinstance(form, Listing) and form.kind == "set":
        return Region((), tuple(plain(item) for item in form.items))
    raise Unreadable("no set of numbers")


def without(region: Region, holes: list[Node]) -> Region:
    """`region` without the points `holes`; they must be numbers inside it, in any order."""

    place = Oracle(heavy=False).sign
    try:
        holes = sorted(holes, key=place)
        spans = list(region.spans)
        for hole in holes:
            for index, span in enumerate(spans):
                if place(span.low) < place(hole) < place(span.high):
                    spans[index : index + 1] = [
                        Span(span.low, hole, (span.closed[0], False)),
                        Span(hole, span.high, (False, span.closed[1])),
                    ]
                    break
    except NoValue as error:
        raise Unreadable("holes that are no numbers") from error
    return Region(tuple(spans), region.points, region.variable)


def taken_away(whole: Region, away: Region) -> Region:
    """`whole` without the intervals of `away`. Raises Unreadable where the ends are no numbers."""
    place = Oracle(heavy=False).sign
    infinite: Node = ("oo",)
    spans, points = list(whole.spans), list(whole.points)
    if points:
        raise Unreadable("an interval taken away from single points")
    try:
        for gone in away.spans:
            sides = (
                Span(("neg", infinite), gone.low, (False, not gone.closed[0])),
                Span(gone.high, infinite, (not gone.closed[1], False)),
            )
            left = [_common(span, side) for span in spans for side in sides if abs(place(side.low)) != place(side.high)]
            points += [span.low for span in left if place(span.low) == place(span.high) and all(span.closed)]
            spans = [span for span in left if place(span.low) < place(span.high)]
    except NoValue as error:
        raise Unreadable("an interval whose ends are no numbers") from error
    return without(Region(tuple(spans), tuple(points), whole.variable), list(away.points))


def _common(a: Span, b: Span) -> Span:
    """What two intervals share; its ends are in the wrong order when that is nothing. Raises NoValue on symbolic ends."""
    place = Oracle(heavy=False).sign
    low, low_closed = max(((s.low, s.closed[0]) for s in (a, b)), key=lambda end: (place(end[0]), not end[1]))
    high, high_closed = min(((s.high, s.closed[1]) for s in (a, b)), key=lambda end: (place(end[0]), end[1]))
    return Span(low, high, (low_closed, high_closed))


def combined(items: list[Form], either: bool) -> Form:
    if not either and len(items) > 1 and all(isinstance(item, Region) for item in items):
        items = [item for item in items if item != EVERYTHING] or [EVERYTHING]  # "and x is real" adds nothing
        if len(items) == 1:
            return items[0]
    regions = [item for item in items if isinstance(item, Region)]
    if len(regions) == len(items) and len({r.variable for r in regions}) == 1:
        if all(len(r.spans) == 1 and not r.points for r in regions) and not either and len(regions) == 2:
            both = _intersection(regions[0], regions[1])
            if both is not None:
                return both
        holed = [r for r in regions if len(r.spans) == 2 and r.spans[0].high == r.spans[1].low]
        if holed and not either:
            whole = [r for r in regions if r not in holed]
            base = whole[0] if len(whole) == 1 else EVERYTHING
            if len(whole) <= 1:
                result = without(base, [r.spans[0].high for r in holed])
                return Region(result.spans, result.points, regions[0].variable)
        return Region(tuple(s for r in regions for s in r.spans), tuple(p for r in regions for p in r.points),
                      regions[0].variable)  # fmt: skip
    if regions and len(regions) < len(items) and len({r.variable for r in regions}) == 1:
        points = [_assigned(item, regions[0].variable) for item in items if not isinstance(item, Region)]
        if all(point is not None for point in points):
            return Region(
                tuple(s for r in regions for s in r.spans),
                (*(p for r in regions for p in r.points), *(p for p in points if p is not None)),
                regions[0].variable,
            )
    flat: list[Form] = []
    for item in items:
        flat.extend(item.items if isinstance(item, Listing) and item.kind == "list" else (item,))
    return Listing("list", tuple(flat))


def _assigned(form: Form, variable: str | None) -> Node | None:
    """The value of "variable = value", None for any other form."""
    if isinstance(form, Relation) and form.operators == ("=",):
        left, right = form.sides
        if isinstance(left, Value) and left.node == ("s", variable) and isinstance(right, Value):
            return right.node
    return None


def _intersection(a: Region, b: Region) -> Region | None:
    place = Oracle(heavy=False).sign
    (first,), (second,) = a.spans, b.spans
    try:
        both = _common(first, second)
        return Region((both,), (), a.variable) if place(both.low) < place(both.high) else None
    except NoValue:
        return None


def spread(form: Form) -> Region:
    """`as_region`, with a list of intervals taken as their union."""
    if isinstance(form, Listing) and form.kind == "list" and not any(isinstance(i, Value) for i in form.items):
        parts = [as_region(item) for item in form.items]
        return Region(tuple(s for p in parts for s in p.spans), tuple(x for p in parts for x in p.points))
    return as_region(form)


def merged(region: Region, oracle: Oracle) -> Region:
    """Spans in order, touching ones joined, points inside spans absorbed. Raises NoValue on symbolic ends."""
    place = oracle.sign
    spans = sorted(region.spans, key=lambda s: (place(s.low), not s.closed[0]))
    points = sorted(region.points, key=place)
    loose: list[Node] = []
    for point in points:
        for index, span in enumerate(spans):
            low, high, at = place(span.low), place(span.high), place(point)
            if low < at < high or (at == low and span.closed[0]) or (at == high and span.closed[1]):
                break
            if at == low:
                spans[index] = Span(span.low, span.high, (True, span.closed[1]))
                break
            if at == high:
                spans[index] = Span(span.low, span.high, (span.closed[0], True))
                break
        else:
            loose.append(point)
    joined: list[Span] = []
    for span in spans:
        if joined:
            last = joined[-1]
            gap = place(span.low) - place(last.high)
            if gap < 0 or (gap == 0 and (span.closed[0] or last.closed[1])):
                if place(span.high) > place(last.high) or (place(span.high) == place(last.high) and span.closed[1]):
                    joined[-1] = Span(last.low, span.high, (last.closed[0], span.closed[1]))
                continue
        joined.append(span)
    return Region(tuple(joined), tuple(loose), region.variable)


def same_region(answer: Form, gold: Form, oracle: Oracle) -> bool:
    """Whether two forms are the same set of real numbers, of which one at least is a region. May raise Undecided."""
    try:
        a, g = spread(answer), spread(gold)
    except Unreadable:
        return False
    if a.variable and g.variable and a.variable != g.variable:
        return False
    with contextlib.suppress(NoValue):  # symbolic ends are compared as they stand
        a, g = merged(a, oracle), merged(g, oracle)
    if len(a.spans) != len(g.spans) or len(a.points) != len(g.points):
        return False
    return all(
        s.closed == t.closed and oracle.same(s.low, t.low) and oracle.same(s.high, t.high)
        for s, t in zip(a.spans, g.spans, strict=True)
    ) and any_order(
        [Value(point) for point in a.points],
        [Value(point) for point in g.points],
        lambda point, wanted: same_value(point, wanted, oracle),  # type: ignore[arg-type]
    )
