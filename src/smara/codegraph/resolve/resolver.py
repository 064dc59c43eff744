"""Turn a file's facts into edges: imports, calls, inheritance, references, tests.

A reference that cannot be followed is matched by its name alone, with low confidence, unless the
name is too common to tell. Tests are joined to what they import, call or are named after.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

from smara.codegraph.language import languages
from smara.codegraph.models import EdgeKind, FileFacts, NewEdge, Reference
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
from smara.core.startup.record import dataclass, field
from smara.core.startup.regex import regex

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


@dataclass(frozen=True, slots=True, eq=False)
class EdgeSet:
    """Edges distinct by start, end, kind and line, with target paths."""

    edges: dict[tuple[int, int, EdgeKind, int], NewEdge] = field(default_factory=dict, init=False)
    path_of: dict[int, str] = field(default_factory=dict, init=False)

    def put(self, edge: NewEdge, path: str) -> None:
        """Add an edge that ends in the file at ``path``.

        The first one of its kind and line holds.
        """
        self.edges.setdefault((edge.scope, edge.to_no, edge.kind, edge.line), edge)
        self.path_of[edge.to_no] = path


_AFFIXES = regex(
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
    table: SymbolTable, project: ProjectFiles, outline: FileOutline, edges: EdgeSet
) -> None:
    """Add ``tests`` edges beside imports and calls out of tests."""
    is_test_file = is_test_path(outline.path)
    in_test: list[bool] = []
    for place, parent in enumerate(outline.parents):
        in_test.append(outline.kinds[place] == "test" or (0 <= parent < place and in_test[parent]))
    if not is_test_file and True not in in_test:
        return
    own_tests = {no for place, no in enumerate(outline.nos) if in_test[place]}
    tests = {no for no, path in edges.path_of.items() if is_test_path(path)}
    added: list[NewEdge] = []
    for edge in edges.edges.values():
        if edge.kind not in ("calls", "imports") or edge.source == "guess":
            continue
        if edge.kind == "imports" or edge.scope < 0:
            is_tested = is_test_file and edges.path_of[edge.to_no] != outline.path
        else:
            # Tests that stand beside the code they test (Rust) call into their own file.
            is_tested = in_test[edge.scope] and edge.to_no not in own_tests
        if is_tested and edge.to_no not in tests:
            added.append(edge._replace(kind="tests"))
    for edge in added:
        edges.put(edge, edges.path_of[edge.to_no])
    stem = tested_stem(outline.path) if is_test_file else None
    spec = languages()[outline.language]
    for suffix in (spec.tested_extensions or spec.extensions) if stem is not None else ():
        paths = project.by_name.get(f"{stem}.{suffix}", ())
        path = closest([each for each in paths if not is_test_path(each)], outline.path)
        if path is None:
            continue
        tested = table.outline(path)
        if tested is not None and tested.file_no not in {edge.to_no for edge in added}:
            guess = NewEdge(-1, tested.file_no, "tests", 1, confidence=NAMED_AFTER, source="guess")
            edges.put(guess, path)
        return


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


@dataclass(frozen=True, eq=False)
class Resolver:
    """A resolver of one tree's files, with shared memos."""

    table: SymbolTable
    project: ProjectFiles
    precise: Callable[[str], Precise] | None = None
    _rules: dict[Callable[..., Any], LanguageRules] = field(default_factory=dict, init=False)
    _named: dict[tuple[LanguageRules, str], list[Symbol]] = field(default_factory=dict, init=False)

    def resolve(self, facts: FileFacts) -> list[NewEdge]:
        """Return a file's edges, distinct by ends, kind and line."""
        outline = self.table.outline(facts.path) or outline_of(
            facts, 0, [0] * len(facts.definitions)
        )
        make = languages()[facts.language].rules
        if make not in self._rules:
            self._rules[make] = make(self.table, self.project)
        rules = self._rules[make]
        edges = EdgeSet()
        _add_imports(rules, facts, outline, edges=edges)
        precise = self.precise(facts.path) if self.precise is not None else None
        if precise:
            # Add the edges that a compiler's index tells, and leave the other references.
            meanings = [(each, precise.get((each.line, each.name))) for each in facts.references]
            for each, meant in meanings:
                if meant is not None and meant != OUTSIDE:
                    edge = NewEdge(each.scope, meant.no, each.kind, each.line, source="scip")
                    edges.put(edge, meant.path)
            left = tuple(each for each, meant in meanings if meant is None)
            facts = facts._replace(references=left)
        walk = ReferenceWalk(rules, facts, outline)
        self._add_by_name(walk, _add_references(walk, facts, edges), edges)
        add_test_edges(self.table, self.project, outline, edges=edges)
        return list(edges.edges.values())

    def forget(self) -> None:
        """Drop what was learned of other files before the next one."""
        self._named.clear()
        for rules in self._rules.values():
            rules.forget()

    def _add_by_name(self, walk: ReferenceWalk, left: list[Reference], edges: EdgeSet) -> None:
        """Join what is left by qualified names, as a linker would, and then by names that one place
        alone has.
        """
        rules = walk.rules
        questions = [
            (each, qualified)
            for each in left
            if (qualified := rules.qualified(walk, each.scope, each.receiver, name=each.name))
            is not None
            or (each.receiver and each.kind == "calls" and is_telling(each.name))
        ]
        missing = {each.name for each, _ in questions if (rules, each.name) not in self._named}
        answer = self.table.named(missing, MOST_OF_A_NAME) if missing else {}
        for name in missing:
            symbols = answer.get(name, [])
            # A name that is too common to be listed whole is one that nothing can be said about.
            self._named[rules, name] = [
                each
                for each in symbols
                if len(symbols) < MOST_OF_A_NAME
                and (spec := languages().get(each.language))
                and self._rules.get(spec.rules) is rules
            ]
        for each, qualified in questions:
            symbols = self._named[rules, each.name]
            edge = NewEdge(each.scope, 0, each.kind, each.line, confidence=BY_NAME)
            if qualified is not None:
                fitting = [
                    symbol
                    for symbol in symbols
                    if symbol.qualname == qualified or symbol.qualname.endswith("." + qualified)
                ]
                symbol = rules.choose(walk.outline, fitting) if fitting else None
            elif (
                len(symbols) == 1
                and symbols[0].kind == "method"
                and not walk.is_foreign(each.scope, each.receiver)
            ):
                symbol, edge = symbols[0], edge._replace(confidence=GUESSED, source="guess")
            else:
                continue
            if symbol is not None:
                edges.put(edge._replace(to_no=symbol.no), symbol.path)


def _add_imports(
    rules: LanguageRules, facts: FileFacts, outline: FileOutline, edges: EdgeSet
) -> None:
    for each in facts.imports:
        if each.is_export and not each.module and not each.level:
            continue
        ends = [(file.file_no, file.path) for file in rules.files_of(outline, each)]
        target = rules.imported(outline, each) if each.name not in ("", "*") else None
        if (
            target is not None
            and not target.is_instance
            and target.place >= 0
            and isinstance(target.where, FileOutline)
        ):
            ends.append((target.where.nos[target.place], target.where.path))
        for no, path in ends:
            if path != outline.path:
                edges.put(NewEdge(each.scope, no, "imports", each.line), path)


def _add_references(walk: ReferenceWalk, facts: FileFacts, edges: EdgeSet) -> list[Reference]:
    """Add the edges of references that can be followed; return the others."""
    left: list[Reference] = []
    for reference in facts.references:
        kind, name, receiver, line, scope = reference
        if (target := walk.target(scope, receiver, name)) is not None and target.place < 0:
            target = walk.rules.meant(target)
        if (
            target is None
            or target.is_instance
            or target.place < 0
            or not isinstance(target.where, FileOutline)
        ):
            if kind != "references":
                left.append(reference)
            continue
        where, place = target.where, target.place
        nos, confidence = [where.nos[place]], CERTAIN
        if place in where.twins:
            nos, confidence = [where.nos[each] for each in where.twins[place]], OVERLOADED
        elif receiver and receiver not in _OWN:
            holder = walk.value(scope, receiver)
            confidence = TYPED if holder is not None and holder.is_instance else CERTAIN
        for no in nos:
            edges.put(NewEdge(scope, no, kind, line, confidence=confidence), where.path)
    return left
