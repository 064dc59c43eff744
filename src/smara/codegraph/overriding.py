"""Methods that stand for each other: the one a class has from its base, and the ones its heirs have
instead.

Which of several bodies a call reaches is not in the syntax, so no edge says it. Whoever changes one
of them is told of the others: who calls the base's method may come to this one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from smara.codegraph.models import Node
from smara.codegraph.walking import Graph, Pairs

_FAR = 8
_MOST_CLASSES = 400
_INHERITS = ("inherits",)
Members = Callable[[Sequence[int], str], Iterable[Node]]
"""What some classes, by their numbers, have by a name."""


def bases_and_heirs(
    graph: Graph, method: Node, members: Members
) -> tuple[tuple[Node, ...], tuple[Node, ...]]:
    """The methods of the same name in the classes above and below that of a method, the nearest
    first.
    """
    owner = graph.parents[graph.places_of([method.no])]
    if method.kind == "file" or not len(owner) or owner[0] < 0:
        return (), ()
    by_heir, by_base = graph.pairs(_INHERITS)
    above, below = _around(by_heir, int(owner[0])), _around(by_base, int(owner[0]))
    # What breaks in the program matters more than in its tests, of which there may be hundreds.
    is_test = graph.is_test[below].tolist() if below else []
    below = [
        place
        for wanted in (False, True)
        for place, is_it in zip(below, is_test, strict=True)
        if is_it == wanted
    ]
    return _called_so(graph, above, method.name, members=members), _called_so(
        graph, below, method.name, members=members
    )


def _around(pairs: Pairs, owner: int) -> list[int]:
    """The classes that are reached from one, the nearest first. They are few: no walk over arrays
    of all nodes.
    """
    found = {owner: None}
    ring = [owner]
    for _ in range(_FAR):
        near = pairs.of(np.array(ring, dtype=np.int64)).tolist()
        ring = [place for place in dict.fromkeys(near) if place not in found]
        found.update(dict.fromkeys(ring))
        if not ring:
            break
    return list(found)[1:]


def _called_so(graph: Graph, classes: list[int], name: str, members: Members) -> tuple[Node, ...]:
    order = {int(graph.nos[place]): number for number, place in enumerate(classes[:_MOST_CLASSES])}
    found = members(list(order), name) if order else []
    return tuple(sorted(found, key=lambda node: (order[node.parent_no or 0], node.first_line)))
