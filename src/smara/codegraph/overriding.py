"""Methods that stand for each other: the one a class has from its base, and the ones its heirs have instead.

Which of several bodies a call reaches is not in the syntax, so no edge says it. Whoever changes one of
them is told of the others: who calls the base's method may come to this one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from smara.codegraph.models import Node
from smara.codegraph.walking import Graph, Ints

_FAR = 8
_MOST_CLASSES = 400
_INHERITS = ("inherits",)
Members = Callable[[Sequence[int], str], Iterable[Node]]
"""What some classes, by their numbers, have by a name."""


def bases_and_heirs(graph: Graph, method: Node, members: Members) -> tuple[tuple[Node, ...], tuple[Node, ...]]:
    """The methods of the same name in the classes above and below that of a method, the nearest first."""
    owner = graph.parents[graph.places_of([method.no])]
    if method.kind == "file" or not len(owner) or owner[0] < 0:
        return (), ()
    return _found(graph, owner, False, method.name, members), _found(graph, owner, True, method.name, members)


def _found(graph: Graph, owner: Ints, is_backward: bool, name: str, members: Members) -> tuple[Node, ...]:
    rings = graph.rings(owner, _FAR, is_backward=is_backward, kinds=_INHERITS)
    classes: Ints = np.concatenate([owner[:0], *rings.places])
    # What breaks in the program matters more than in its tests, of which there may be hundreds.
    classes = classes[np.argsort(graph.is_test[classes], kind="stable")][:_MOST_CLASSES]
    order = {no: number for number, no in enumerate(graph.nos[classes].tolist())}
    found = members(list(order), name) if order else []
    return tuple(sorted(found, key=lambda node: (order[node.parent_no or 0], node.first_line)))
