"""Read the names a file calls, inherits or mentions, and its bindings.

Constants are found by their capitals instead of by the query, which would cost more than the rest
of the parse. A parameter without a type hides the file's own name inside its function:
in ``def f(path): path.exists()`` the module ``path`` is not meant.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import lru_cache, partial

from smara.codegraph.language import LanguageSpec
from smara.codegraph.models import Binding, Definition, Import, Reference, ReferenceKind
from smara.codegraph.parse.definitions import Scopes
from smara.codegraph.parse.source import SourceFile
from smara.core.extract import word_set
from smara.core.startup.regex import re, regex

# What begins with a set of letters is searched for at twice the speed of what begins with a
# boundary.
_NAMES = regex(rb"[A-Z](?<!\w[A-Z])[A-Z0-9_]++(?![\w$(])(?!\s*=[^=])")
_PATH = regex(rb"(?:(?=[\w$]++(?:\.|::|->))[\w$]++(?:\.|::|->))*+\Z")
_IN_PATHS = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_$.:->")
_JOINTS = (b".", b":", b">")
_LONGEST = 120


def constant_spans(source: SourceFile, names: Collection[str] | None) -> list[tuple[int, int]]:
    """Return spans of constants a file has names for; ``None`` takes any.

    Not where they are assigned to, called, imported or quoted.
    """
    data = source.bared
    upper = {name.encode("utf-8", "replace") for name in names or () if name.isupper()}
    spans = []
    for match in _NAMES.finditer(data):
        start, end = match.span()
        if data[start - 1 : start] in _JOINTS:
            # The path before a name belongs to it: ``limits.cart.MOST``.
            first, least = start, max(0, start - _LONGEST)
            while first > least and data[first - 1] in _IN_PATHS:
                first -= 1
            path = _PATH.search(data, first, start)
            start = path.start() if path else start
        elif names is not None and match[0] not in upper:
            continue
        spans.append((start, end))
    for label in ("string", "import") if spans else ():
        # The others are sorted and do not overlap.
        others = source.spans(label)
        starts = [start for start, _ in others]
        places = [bisect_right(starts, start) - 1 for start, _ in spans]
        spans = [
            span
            for span, place in zip(spans, places, strict=True)
            if place < 0 or others[place][1] <= span[0]
        ]
    return spans


LONGEST_USE = 240
LONGEST_TYPE = 120
LONGEST_RECEIVER = 100
UNKNOWN = "?"
"""The receiver of a call on something that has no plain name: a string, a sum, a long chain."""
RETURNS = "()"
"""The name under which a function's scope binds the type that it returns."""
_INSIDE_ROUND = regex(r"\((?:[^()]|\(\))+\)")
_INSIDE_SQUARE = regex(r"\[(?:[^\[\]]|\[\])+\]")
_INSIDE_ANGLES = regex(r"(?:::)?<(?:[^<>()]|<>)*>")
_PLAIN = regex(r"[\w$]+(?:(?:\(\)|\[\]|[!?])*(?:\.|::|->)[\w$#]+)*(?:\(\)|\[\]|[!?])*")
_WORDS_BEFORE = regex(r"^\(*(?:new|await|yield|go|defer)\s+")
_PATH_BEFORE = regex(rb"[\w:.]*$")
_FIRST_PART = regex(r"\.|::|->|[(\[!?]")
_NAME = regex(r"[^\W\d][\w$]*|\$[\w$]*|#\w+")
_OPTIONAL = regex(
    r"^(?:typing\.|t\.)?(?:Optional|Final|ClassVar|Annotated|Type|type)\[(.*)\]$", re.S
)
_WRAPPERS = regex(
    r"^(?:Box|Rc|Arc|Option|Ref|RefMut|Readonly|Partial|Promise|std::unique_ptr|std::shared_ptr"
    r"|unique_ptr|shared_ptr)<(.*)>$",
    re.S,
)
_ANYTHING: set[str] = set()
"""Stands for every name: where files share names without importing them, any type may be another
file's.
"""
_PLAIN_TYPES = word_set(
    "var string int int8 int16 int32 int64 uint uint8 uint16 uint32 uint64 byte rune bool error "
    "any float32 float64"
    " uintptr complex64 complex128 size_t ssize_t uint8_t uint16_t uint32_t uint64_t int8_t "
    "int16_t int32_t int64_t"
    " String Object Integer Long Boolean Double Override std T K V NULL EOF TRUE FALSE"
)
_NO_TYPES = word_set("var auto let void None any unknown object Any _ require")
_TYPE_WORDS = regex(
    r"^(?:(?:const|mut|dyn|impl|final|volatile|static|struct|enum|union|unsigned|readonly|ref"
    r"|&\s*'\w+)\s+)+"
)


def read_references(
    source: SourceFile, scopes: Scopes, definitions: Sequence[Definition], imports: Sequence[Import]
) -> list[Reference]:
    """Return what definitions use, once each, with the first line.

    Names that are called or inherited are all kept. Those only mentioned are kept where the file
    itself imports or defines their first part, since any other is a local variable.
    """
    names = {definition.name for definition in definitions}
    names.update(each.alias or each.name for each in imports)
    # A module that is imported whole is spoken of by the first part of its path.
    names.update(
        each.module.rpartition("/")[2]
        if "/" in each.module
        else _FIRST_PART.split(each.module, maxsplit=1)[0]
        for each in imports
        if not each.name and not each.alias
    )
    references: list[Reference] = []
    collect = partial(_collect, source, scopes, definitions, references)
    bases = set(source.spans("base"))
    collect("inherits", sorted(bases))
    calls = [(node.start_byte, node.end_byte) for node in source.found.get("call", ())]
    for node in source.found.get("invoke", ()):
        arguments = node.child_by_field_name("arguments")
        calls.append((node.start_byte, arguments.start_byte if arguments else node.end_byte))
    for node in source.found.get("token", ()):
        # In a macro, whose contents are not parsed, the path before a name belongs to it:
        # ``Shop::new``. A dot alone does too: ``a().b`` has a receiver, although an unknown one.
        start = node.start_byte
        path = _PATH_BEFORE.search(source.data, max(0, start - LONGEST_USE), start)
        calls.append((path.start() if path else start, node.end_byte))
    # Components of one's own, not those of the browser.
    calls += [
        (start, end)
        for start, end in source.spans("element")
        if b"." in source.data[start:end] or source.data[start : start + 1].isupper()
    ]
    calls.sort()
    collect("calls", calls)
    taken = bases
    if types := source.spans("type"):
        # A type that is called, inherited or qualified is found a second time by its last name
        # alone.
        taken = bases.union(calls)
        widest = {end: start for start, end in sorted(taken.union(types), reverse=True)}
        alone = [span for span in types if span not in taken and widest[span[1]] == span[0]]
        collect("references", alone, _ANYTHING)
        taken = taken.union(types)
    mentions = {span for span in source.spans("use") if span not in taken}
    is_any = source.spec.has_macros
    spans = constant_spans(source, None if is_any else names)
    if constants := [span for span in spans if span not in taken]:
        collect("references", constants, _ANYTHING if is_any else set(source.spec.selves))
        mentions = mentions.difference(constants) if is_any else mentions.union(constants)
    collect("references", sorted(mentions), names)
    return references


def _collect(
    source: SourceFile,
    scopes: Scopes,
    definitions: Sequence[Definition],
    references: list[Reference],
    kind: ReferenceKind,
    spans: Iterable[tuple[int, int]],
    names: set[str] | None = None,
) -> None:
    """Add the references at sorted spans.

    With ``names``, only those that begin with one of them and do not lead to themselves.
    """
    data, starts, separators = source.data, source.line_starts, source.spec.separators
    add, make = references.append, tuple.__new__
    breaks, owners = scopes.breaks, scopes.owners
    place, until, scope = 0, breaks[0] if breaks else len(data) + 1, -1
    seen: set[bytes] = set()
    seen_by_scope = {scope: seen}
    for start, end in spans:
        if start >= until:
            while start >= until:
                scope = owners[place]
                place += 1
                until = breaks[place] if place < len(breaks) else len(data) + 1
            seen = seen_by_scope.setdefault(scope, set())
        text = data[start:end] if end - start <= LONGEST_USE else data[end - LONGEST_USE : end]
        if text in seen:
            continue
        seen.add(text)
        name, receiver = split_use(text, separators)
        if name and names is not None:
            first = _FIRST_PART.split(receiver, maxsplit=1)[0] if receiver else name
            is_named = first not in _PLAIN_TYPES if names is _ANYTHING else first in names
            is_itself = scope >= 0 and definitions[scope].name == name
            if not is_named or (is_itself and (names is _ANYTHING or not receiver)):
                continue
        if name:
            add(make(Reference, (kind, name, receiver, bisect_right(starts, start), scope)))


@lru_cache(maxsize=50_000)
def split_use(text: bytes, separators: tuple[bytes, ...]) -> tuple[str, str]:
    """Return the name and the receiver of a use.

    ``os.path.join`` is ``join`` of ``os.path``.

    What was called or indexed on the way keeps its empty brackets (``Path().parent``); what has no
    plain name is ``?``. A name without a receiver has an empty one.
    """
    written = text.decode("utf-8", "replace")
    if written.isidentifier():
        return written, ""
    receiver, dot, name = written.rpartition(".")
    if (
        dot
        and name.isidentifier()
        and receiver.replace(".", "").isidentifier()
        and len(receiver) <= LONGEST_RECEIVER
    ):
        return name, receiver
    if " " in written:
        written = _WORDS_BEFORE.sub("", written)
    written = "".join(written.split())
    for _ in range(4):  # one inside the other: ``Map<K,List<V>>`` is ``Map``
        if "<" not in written:
            break
        written = _INSIDE_ANGLES.sub("", written)
    written = written.replace("{}", "")
    cut, width = -1, 0
    for separator in separators:
        mark = separator.decode()
        at = written.rfind(mark)
        if at > cut:
            cut, width = at, len(mark)
    name = written[cut + width :] if cut >= 0 else written
    if not _NAME.fullmatch(name):
        return "", ""
    if cut < 0:
        return name, ""
    receiver = _plain_receiver(written[:cut].rstrip("?!"))
    return name, receiver if receiver and len(receiver) <= LONGEST_RECEIVER else UNKNOWN


def _plain_receiver(text: str) -> str:
    for _ in range(4):
        shorter = _INSIDE_ROUND.sub("()", _INSIDE_SQUARE.sub("[]", text))
        if shorter == text:
            break
        text = shorter
    return text if _PLAIN.fullmatch(text) else UNKNOWN


def read_bindings(
    source: SourceFile, scopes: Scopes, definitions: Sequence[Definition]
) -> list[Binding]:
    """Return variables, parameters and fields with an evident type.

    What a call makes is bound to the name that is called: a class, or a function that returns
    something. Fields are bound as ``self.x`` in the scope of their class, in every language; what a
    function returns is bound as ``()`` in its own scope.
    """
    bindings: dict[tuple[str, int], Binding] = {}
    for names, types, read in _PAIRS:
        if names not in source.found:
            continue
        for start, end, type_start, type_end in source.pairs(names, types):
            if end - start <= LONGEST_TYPE and type_end - type_start <= LONGEST_USE:
                text = source.text(start, end)
                name, scope = _variable(
                    f"this.{text}" if names == "own.name" else text,
                    scopes.at(start),
                    definitions,
                    source=source,
                )
                kind = read(source.text(type_start, type_end))
                if name and kind:
                    bindings.setdefault((name, scope), Binding(name, kind, scope))
    for start, end, other, other_end in source.pairs("copied.name", "copied.from"):
        # A field takes the value of a variable whose type is known: ``self.x = x``.
        scope = scopes.at(start)
        copied = bindings.get((source.text(other, other_end), scope))
        name, owner = _variable(source.text(start, end), scope, definitions, source=source)
        if copied and name:
            bindings.setdefault((name, owner), Binding(name, copied.type, owner))
    for start, end in source.spans("returns"):
        scope = scopes.at(start)
        if (kind := plain_type(source.text(start, min(end, start + LONGEST_TYPE)))) and scope >= 0:
            bindings.setdefault((RETURNS, scope), Binding(RETURNS, kind, scope))
    return list(bindings.values())


def _variable(
    text: str, scope: int, definitions: Sequence[Definition], source: SourceFile
) -> tuple[str, int]:
    """Return the name and the scope of a variable.

    A field of an object is bound in the object's class.
    """
    while scope >= 0 and definitions[scope].kind == "constant":
        scope = definitions[scope].parent
    receiver, dot, name = text.rpartition(".")
    if not dot:
        in_class = scope >= 0 and definitions[scope].kind == "class"
        return f"self.{text}" if in_class else text, scope
    if receiver not in source.spec.selves:
        return "", scope
    while scope >= 0 and definitions[scope].kind != "class":
        scope = definitions[scope].parent
    return (f"self.{name}", scope) if scope >= 0 else ("", scope)


def _plain_maker(text: str) -> str:
    if text.isidentifier():
        return "" if text in _NO_TYPES else text
    receiver = _plain_receiver(_INSIDE_ANGLES.sub("", "".join(text.split())))
    return "" if receiver == UNKNOWN else receiver


def plain_type(text: str) -> str:
    """Return a written type without what only qualifies it.

    Quotes, ``Optional``, ``| None``, pointers, ``const``.
    """
    if text.isidentifier():
        return "" if text in _NO_TYPES else text
    text = text.strip().lstrip(":").strip().strip("'\"")
    for _ in range(3):
        if wrapper := _OPTIONAL.match(text) or _WRAPPERS.match(text):
            text = wrapper[1].strip()
        for ending in ("| None", "| null", "| undefined"):
            text = text.removesuffix(ending).rstrip()
        text = _TYPE_WORDS.sub("", text.removeprefix("None |")).strip("&*? '\"")
    if text.startswith("("):
        text = text.strip("()").partition(",")[0].rpartition(" ")[2].strip("&*")
    return text if text not in _NO_TYPES and len(text) <= LONGEST_TYPE else ""


_PAIRS: tuple[tuple[str, str, Callable[[str], str]], ...] = (
    ("typed.name", "typed.type", plain_type),
    ("own.name", "own.type", plain_type),
    ("made.name", "made.by", _plain_maker),
    ("got.name", "got.from", lambda text: _plain_maker(text).removesuffix("()")),
    ("opened.name", "opened.by", _plain_maker),
)


_SQUARE = regex(r"\[[^\[\]]*\]")
_ROUND = regex(r"\([^()]*\)")
_FUNCTION = regex(r"(?:\bdefault|=)\s*(?:async\s*)?(?:function\b[\s*\w$]*)?\(")
_PARAMETERS = regex(r"(?:^|[(,{])\s*(?:\*{1,2}|\.\.\.)?([\w$]+)\s*(?=[,:=)}]|$)")


def hidden_names(
    spec: LanguageSpec,
    definitions: Sequence[Definition],
    imports: Sequence[Import],
    bindings: Sequence[Binding],
) -> Iterator[Binding]:
    """Bind untyped parameters that hide a file's name to nothing."""
    if not spec.has_untyped_parameters:
        return
    names = {each.name for each in definitions if each.parent < 0}
    names.update(each.alias or each.name or each.module.partition(".")[0] for each in imports)
    bound = {(each.name, each.scope) for each in bindings}
    for place, definition in enumerate(definitions):
        signature = definition.signature
        # The default of a file may be the result of a call, ``memo(Button)``: what stands in its
        # brackets is used there and is no parameter.
        is_made = not signature or (
            definition.name == "default" and "(" in signature and not _FUNCTION.search(signature)
        )
        if definition.kind in ("function", "method", "test") and not is_made:
            for name in _parameters(definition.signature):
                if name in names and name != definition.name and (name, place) not in bound:
                    bound.add((name, place))
                    yield Binding(name, "", place)


def _parameters(signature: str) -> list[str]:
    """Return the names of a signature's parameters.

    What stands in brackets inside them are types and values.
    """
    _, opened, inside = signature.partition("(")
    if not opened:
        return _PARAMETERS.findall(signature.rpartition("=")[2])
    inside = inside.rpartition(")")[0]
    for opening, brackets in (("[", _SQUARE), ("(", _ROUND)):
        while opening in inside and (shorter := brackets.sub("", inside)) != inside:
            inside = shorter
    return _PARAMETERS.findall(inside)
