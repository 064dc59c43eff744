"""Turn a file's facts into edges: imports, calls, inheritance, references, tests.

A reference that cannot be followed is matched by its name alone, with low confidence, unless the
name is too common to tell. Tests are joined to what they import, call or are named after.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from smara.codegraph.language import languages
from smara.codegraph.models import EdgeKind, FileFacts, NewEdge, ReferenceKind
from smara.codegraph.resolve.rules import LanguageRules, ReferenceWalk
from smara.codegraph.resolve.scip import OUTSIDE, Precise
from smara.codegraph.resolve.symbols import (
    FileOutline,
    ProjectFiles,
    Symbol,
    SymbolTable,
    closest,
    outline_of,
)
from smara.core.paths import is_test_path

SHORTEST_GUESS = 4
"""Letters a name has at least before one place that bears it is taken for the one that is meant."""

_WORDS = """
add addAll addEventListener all and any apply append appendChild apply arguments as_bytes as_mut
as_ref as_slice as_str assert assertEqual assertEquals assertTrue assign async at await back begin
bind body borrow borrow_mut build bytes call catch chain charAt charCodeAt chars children clear
click clone close cmp collect compare compareTo concat config connect constructor contains
containsKey context copy count create data debug default delete dequeue deref describe destroy
dispatch display done drain draw each emit empty enable encode end endsWith endswith enqueue entries
entry enumerate equals erase error eval every exec execute exists exit expect expects extend fail
fetch field fields file fill filter filter_map finalize find find_all findAll first flat flatMap
flatten flush fmt fold forEach format free from from_str front get getBytes getClass getElementById
getId getItem getKey getName getOrDefault getState getType getValue global group handle has hasNext
hasOwnProperty hash hashCode head height hide id include includes index indexOf info init insert
insert_one inspect instance into into_iter invoke is_empty is_err is_none is_ok is_some isEmpty
isPresent item items iter iter_mut iterator join key keys kill last lastIndexOf left len length line
lines list listen load local lock log login lookup lower main make map map_err match matches max
merge message method min mock model move name names new next node none not notify now null object
ofType offer offset on once open option options or ord order orElse out output pack parent parse
parse_args patch path peek perform ping poll pop popitem position post pow prepare press prev print
printf println process publish pull push push_back push_str put query queue quit raise random range
read readLine readline receive record reduce ref refresh register reject release reload remove
removeAll render repeat replace replaceAll reply request reserve reset resize resolve response rest
result resume return reverse right round route row run save scan schedule score search seek select
self send serialize session set setItem setName setState setTimeout setUp setValue setup shift show
shutdown sign size skip sleep slice some sort source spawn splice split start starts_with startsWith
startswith stat state status step stop store str stream stringify strip sub submit subscribe
subscriptions substr substring success sum swap sync table tag take task test text then this throw
throws time title to_owned to_string to_vec toArray toBe toEqual toFixed toISOString toJSON
toLowerCase toString toUpperCase token toUpperCase top trace trim type unlock unref unshift
unsubscribe unwrap unwrap_or unwrap_or_else update upper url use user val validate value valueOf
values verify version view visit wait walk warn when where width with with_capacity wrap write
writeln yield zip
"""


_BUILTINS = (
    str, bytes, bytearray, list, dict, set, tuple, int, float, complex, type, object,
    BaseException, memoryview, io.TextIOWrapper, io.BytesIO, io.BufferedReader, Path,
)  # fmt: skip
COMMON_NAMES = frozenset(_WORDS.split()).union(*map(dir, _BUILTINS))


def is_telling(name: str) -> bool:
    """Return True if a name is rare enough to identify its target."""
    return len(name) >= SHORTEST_GUESS and name not in COMMON_NAMES and not name.startswith("__")


class FoundEdges:
    """Edges distinct by start, end, kind and line, with target paths."""

    __slots__ = ("edges", "path_of")

    def __init__(self) -> None:
        self.edges: dict[tuple[int, int, EdgeKind, int], NewEdge] = {}
        self.path_of: dict[int, str] = {}

    def put(self, edge: NewEdge, path: str) -> None:
        """Add an edge that ends in the file at ``path``.

        The first one of its kind and line holds.
        """
        self.edges.setdefault((edge.scope, edge.to_no, edge.kind, edge.line), edge)
        self.path_of[edge.to_no] = path


_AFFIXES = re.compile(
    r"^(?:test_|tests_|Test(?=[A-Z]))|(?:[._-](?:tests?|spec)|(?<=[a-z0-9])(?:Tests?|TestCase|IT"
    r"|Spec))$"
)


def tested_stem(path: str) -> str | None:
    """Return what a test file is named after: ``tests/test_client.py`` gives ``client``.

    ``None`` if its name does not say.

    A file that merely stands in a folder of tests is named after nothing.
    """
    stem = path.rpartition("/")[2].rpartition(".")[0]
    bare = _AFFIXES.sub("", stem)
    return bare if bare and bare != stem else None


NAMED_AFTER = 0.6
"""Of a file that a test is named after and does not import."""


def add_test_edges(
    table: SymbolTable,
    project: ProjectFiles,
    outline: FileOutline,
    found: FoundEdges,
) -> None:
    """Add ``tests`` edges beside imports and calls out of tests."""
    is_test_file = is_test_path(outline.path)
    in_test: list[bool] = []
    for place, parent in enumerate(outline.parents):
        in_test.append(outline.kinds[place] == "test" or (0 <= parent < place and in_test[parent]))
    if not is_test_file and True not in in_test:
        return
    own_tests = {no for place, no in enumerate(outline.nos) if in_test[place]}
    tests = {no for no, path in found.path_of.items() if is_test_path(path)}
    added: list[NewEdge] = []
    for edge in found.edges.values():
        if edge.kind not in ("calls", "imports") or edge.source == "guess":
            continue
        if edge.kind == "imports" or edge.scope < 0:
            is_tested = is_test_file and found.path_of[edge.to_no] != outline.path
        else:
            # Tests that stand beside the code they test (Rust) call into their own file.
            is_tested = in_test[edge.scope] and edge.to_no not in own_tests
        if is_tested and edge.to_no not in tests:
            added.append(edge._replace(kind="tests"))
    named_after = _named_after(table, project, outline) if is_test_file else None
    if named_after is not None and named_after.file_no not in {edge.to_no for edge in added}:
        added.append(
            NewEdge(
                -1, named_after.file_no, "tests", line=1, confidence=NAMED_AFTER, source="guess"
            )
        )
        found.path_of[named_after.file_no] = named_after.path
    for edge in added:
        found.put(edge, found.path_of[edge.to_no])


def _named_after(
    table: SymbolTable, project: ProjectFiles, outline: FileOutline
) -> FileOutline | None:
    stem = tested_stem(outline.path)
    if stem is None:
        return None
    spec = languages()[outline.language]
    for suffix in spec.tested_extensions or spec.extensions:
        paths = [
            path for path in project.by_name.get(f"{stem}.{suffix}", ()) if not is_test_path(path)
        ]
        path = closest(paths, outline.path)
        if path is not None:
            return table.outline(path)
    return None


CERTAIN = 1.0
TYPED = 0.9
"""Of a member that was found through the type of what stands before the dot."""
BY_NAME = 0.8
"""Of a function or method that was found by its qualified name alone, as a linker does."""
OVERLOADED = 0.6
"""Of each of several definitions of one name, which only the types of the arguments tell apart."""
GUESSED = 0.3
MOST_OF_A_NAME = 64
"""Definitions of one name that are looked through at most."""

_OWN = frozenset({"self", "this", "cls", "super()", "Self", "super"})


class Left(NamedTuple):
    """A reference whose meaning was not found by following names."""

    kind: ReferenceKind
    name: str
    receiver: str
    line: int
    scope: int


class Resolver:
    """A resolver of one tree's files, with shared memos."""

    def __init__(
        self,
        table: SymbolTable,
        project: ProjectFiles,
        precise: Callable[[str], Precise] | None = None,
    ) -> None:
        self._table = table
        self._precise = precise
        self._project = project
        self._rules: dict[Callable[..., Any], LanguageRules] = {}
        self._named: dict[tuple[LanguageRules, str], list[Symbol]] = {}

    def resolve(self, facts: FileFacts) -> list[NewEdge]:
        """Return a file's edges, distinct by ends, kind and line."""
        outline = self._table.outline(facts.path) or outline_of(
            facts, 0, [0] * len(facts.definitions)
        )
        make = languages()[facts.language].rules
        if make not in self._rules:
            self._rules[make] = make(self._table, self._project)
        rules = self._rules[make]
        walk = ReferenceWalk(rules, facts, outline)
        found = FoundEdges()
        _add_imports(rules, facts, outline, found=found)
        precise = self._precise(facts.path) if self._precise is not None else None
        if precise:
            facts = _add_precise(facts, precise, found)
        left = _add_references(walk, facts, found)
        self._add_by_name(walk, left, found)
        add_test_edges(self._table, self._project, outline, found=found)
        return list(found.edges.values())

    def forget(self) -> None:
        """Drop what was learned of other files before the next one."""
        self._named.clear()
        for rules in self._rules.values():
            rules.forget()

    def _add_by_name(self, walk: ReferenceWalk, left: list[Left], found: FoundEdges) -> None:
        """Join what is left by qualified names, as a linker would, and then by names that one place
        alone has.
        """
        rules, outline = walk.rules, walk.outline
        asked = [
            (each, rules.qualified(walk, each.scope, each.receiver, name=each.name))
            for each in left
        ]
        wanted = [
            (each, qualified)
            for each, qualified in asked
            if qualified is not None
            or (each.receiver and each.kind == "calls" and is_telling(each.name))
        ]
        self._look_up(rules, {each.name for each, _ in wanted})
        for each, qualified in wanted:
            symbols = self._named[rules, each.name]
            if not symbols:
                continue
            if qualified is not None:
                fitting = [
                    symbol
                    for symbol in symbols
                    if (symbol.qualname == qualified or symbol.qualname.endswith("." + qualified))
                ]
                symbol = rules.choose(outline, fitting)
                if symbol is not None:
                    found.put(
                        NewEdge(
                            each.scope, symbol.no, each.kind, line=each.line, confidence=BY_NAME
                        ),
                        symbol.path,
                    )
            elif (
                len(symbols) == 1
                and symbols[0].kind == "method"
                and not walk.is_foreign(each.scope, each.receiver)
            ):
                edge = NewEdge(
                    each.scope,
                    symbols[0].no,
                    each.kind,
                    line=each.line,
                    confidence=GUESSED,
                    source="guess",
                )
                found.put(edge, symbols[0].path)

    def _look_up(self, rules: LanguageRules, names: set[str]) -> None:
        missing = {name for name in names if (rules, name) not in self._named}
        if not missing:
            return
        answer = self._table.named(missing, MOST_OF_A_NAME)
        for name in missing:
            symbols = answer.get(name, [])
            # A name that is too common to be listed whole is one that nothing can be said about.
            is_whole = len(symbols) < MOST_OF_A_NAME
            ours = [
                each
                for each in symbols
                if (spec := languages().get(each.language)) and self._rules.get(spec.rules) is rules
            ]
            self._named[rules, name] = ours if is_whole else []


def _add_imports(
    rules: LanguageRules, facts: FileFacts, outline: FileOutline, found: FoundEdges
) -> None:
    for each in facts.imports:
        if each.is_export and not each.module and not each.level:
            continue
        for file in rules.files_of(outline, each):
            if file.path != outline.path:
                found.put(
                    NewEdge(
                        each.scope, file.file_no, "imports", line=each.line, confidence=CERTAIN
                    ),
                    file.path,
                )
        if each.name in ("", "*"):
            continue
        target = rules.imported(outline, each)
        if (
            target is None
            or target.is_instance
            or target.place < 0
            or not isinstance(target.where, FileOutline)
        ):
            continue
        if target.where.path != outline.path:
            no = target.where.nos[target.place]
            found.put(
                NewEdge(each.scope, no, "imports", line=each.line, confidence=CERTAIN),
                target.where.path,
            )


def _add_precise(facts: FileFacts, precise: Precise, found: FoundEdges) -> FileFacts:
    """Add the edges that a compiler's index tells, and leave the references that it says nothing
    about.
    """
    left = []
    for each in facts.references:
        meant = precise.get((each.line, each.name))
        if meant is None:
            left.append(each)
        elif meant != OUTSIDE:
            found.put(
                NewEdge(
                    each.scope,
                    meant.no,
                    each.kind,
                    line=each.line,
                    confidence=CERTAIN,
                    source="scip",
                ),
                meant.path,
            )
    return facts._replace(references=tuple(left))


def _add_references(walk: ReferenceWalk, facts: FileFacts, found: FoundEdges) -> list[Left]:
    edges = found.edges
    left: list[Left] = []
    for kind, name, receiver, line, scope in facts.references:
        numbered = _number(walk, scope, receiver, name=name, found=found)
        if numbered is not None:
            nos, confidence = numbered
            for no in nos:
                place = (scope, no, kind, line)
                if place not in edges:
                    edges[place] = NewEdge(scope, no, kind, line=line, confidence=confidence)
        elif kind != "references":
            left.append(Left(kind, name, receiver, line=line, scope=scope))
    return left


def _number(
    walk: ReferenceWalk, scope: int, receiver: str, name: str, found: FoundEdges
) -> tuple[list[int], float] | None:
    """Return the numbers of the nodes that a name means, with how sure that is: one node, or
    all overloads of it.
    """
    target = walk.target(scope, receiver, name)
    if target is not None and target.place < 0:
        target = walk.rules.meant(target)
    if target is None or target.is_instance or target.place < 0:
        return None
    where, place = target.where, target.place
    if not isinstance(where, FileOutline):
        return None
    certainty = CERTAIN
    if receiver and receiver not in _OWN:
        holder = walk.value(scope, receiver)
        certainty = TYPED if holder is not None and holder.is_instance else CERTAIN
    nos = [where.nos[place]]
    if place in where.twins:
        nos = [where.nos[each] for each in where.twins[place]]
        certainty = OVERLOADED
    for no in nos:
        found.path_of[no] = where.path
    return nos, certainty
