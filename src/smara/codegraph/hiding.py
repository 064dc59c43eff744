"""Parameters that are called like something of the file: inside their function they hide it.

In ``def f(path): path.exists()`` the file's own ``path`` is not meant. Where parameters bear their
types, those tell; where they need not (Python, JavaScript), their names are taken from the
signature.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from smara.codegraph.models import Binding, Definition, Import, Language

_UNTYPED = frozenset({"python", "javascript", "typescript", "tsx"})
_SQUARE = re.compile(r"\[[^\[\]]*\]")
_ROUND = re.compile(r"\([^()]*\)")
_FUNCTION = re.compile(r"(?:\bdefault|=)\s*(?:async\s*)?(?:function\b[\s*\w$]*)?\(")
_PARAMETERS = re.compile(r"(?:^|[(,{])\s*(?:\*{1,2}|\.\.\.)?([\w$]+)\s*(?=[,:=)}]|$)")


def hidden_names(
    language: Language,
    definitions: Sequence[Definition],
    imports: Sequence[Import],
    bindings: Sequence[Binding],
) -> Iterator[Binding]:
    """A binding to nothing known for each parameter that hides a name of the file and has no
    type.
    """
    if language not in _UNTYPED:
        return
    known = {each.name for each in definitions if each.parent < 0}
    known.update(each.alias or each.name or each.module.partition(".")[0] for each in imports)
    told = {(each.name, each.scope) for each in bindings}
    for place, definition in enumerate(definitions):
        if definition.kind in ("function", "method", "test") and not _is_made(definition):
            for name in _parameters(definition.signature):
                if name in known and name != definition.name and (name, place) not in told:
                    told.add((name, place))
                    yield Binding(name, "", place)


def _is_made(definition: Definition) -> bool:
    """Whether a file's default is the result of a call, ``memo(Button)``: what stands in its
    brackets is used there.
    """
    signature = definition.signature
    return not signature or (
        definition.name == "default" and "(" in signature and not _FUNCTION.search(signature)
    )


def _parameters(signature: str) -> list[str]:
    """The names of a signature's parameters; what stands in brackets inside them are types and
    values.
    """
    _, opened, inside = signature.partition("(")
    if not opened:
        return _PARAMETERS.findall(signature.rpartition("=")[2])
    inside = inside.rpartition(")")[0]
    for opening, brackets in (("[", _SQUARE), ("(", _ROUND)):
        while opening in inside and (shorter := brackets.sub("", inside)) != inside:
            inside = shorter
    return _PARAMETERS.findall(inside)
