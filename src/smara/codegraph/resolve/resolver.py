"""From a file's facts to its edges: imports, calls, inheritance, references, and what tests
exercise.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple

from smara.codegraph.models import FileFacts, Language, NewEdge, ReferenceKind
from smara.codegraph.resolve.common_names import is_telling
from smara.codegraph.resolve.found import FoundEdges
from smara.codegraph.resolve.outline import Outline, outline_of
from smara.codegraph.resolve.project import ProjectFiles
from smara.codegraph.resolve.rules import Rules
from smara.codegraph.resolve.table import Symbol, SymbolTable
from smara.codegraph.resolve.tests_edges import add_test_edges
from smara.codegraph.resolve.walk import Walk
from smara.codegraph.scip import OUTSIDE, Precise

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
FAMILIES: dict[Language, str] = {
    "python": "python", "typescript": "script", "tsx": "script", "javascript": "script",
    "rust": "rust", "go": "go", "java": "java", "c": "c", "cpp": "c",
}  # fmt: skip
"""Languages that see each other's names."""


class Left(NamedTuple):
    """A reference whose meaning was not found by following names."""

    kind: ReferenceKind
    name: str
    receiver: str
    line: int
    scope: int


class Resolver:
    """Joins files to the rest of their tree. One resolver serves a whole index; its memos are
    shared by all files.
    """

    def __init__(
        self,
        table: SymbolTable,
        project: ProjectFiles,
        precise: Callable[[str], Precise] | None = None,
    ) -> None:
        self._table = table
        self._precise = precise
        self._project = project
        self._rules: dict[str, Rules] = {}
        self._named: dict[tuple[str, str], list[Symbol]] = {}

    def resolve(self, facts: FileFacts, tested: Collection[int] = ()) -> list[NewEdge]:
        """The edges that start in a file: distinct by where they start, end, their kind and line.

        ``tested`` are nodes that parts of the file test of which nothing is said here.
        """
        outline = self._table.outline(facts.path) or outline_of(
            facts, 0, [0] * len(facts.definitions)
        )
        rules = self._rules_for(facts.language)
        walk = Walk(rules, facts, outline)
        found = FoundEdges()
        _add_imports(rules, facts, outline, found=found)
        precise = self._precise(facts.path) if self._precise is not None else None
        if precise:
            facts = _add_precise(facts, precise, found)
        left = _add_references(walk, facts, found)
        self._add_by_name(walk, left, found)
        add_test_edges(self._table, self._project, outline, found=found, tested=tested)
        return list(found.edges.values())

    def forget(self) -> None:
        """Drop what was learned of other files, so that the next file asks for all it needs."""
        self._named.clear()
        for rules in self._rules.values():
            rules.forget()

    def _rules_for(self, language: Language) -> Rules:
        family = FAMILIES[language]
        rules = self._rules.get(family)
        if rules is None:
            rules = self._rules[family] = _make_rules(family)(self._table, self._project)
        return rules

    def _add_by_name(self, walk: Walk, left: list[Left], found: FoundEdges) -> None:
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
        self._look_up(FAMILIES[outline.language], {each.name for each, _ in wanted})
        for each, qualified in wanted:
            symbols = self._named[FAMILIES[outline.language], each.name]
            if not symbols:
                continue
            if qualified is not None:
                fitting = [symbol for symbol in symbols if _ends_with(symbol.qualname, qualified)]
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

    def _look_up(self, family: str, names: set[str]) -> None:
        missing = {name for name in names if (family, name) not in self._named}
        if not missing:
            return
        answer = self._table.named(missing, MOST_OF_A_NAME)
        for name in missing:
            symbols = answer.get(name, [])
            # A name that is too common to be listed whole is one that nothing can be said about.
            is_whole = len(symbols) < MOST_OF_A_NAME
            ours = [symbol for symbol in symbols if FAMILIES[symbol.language] == family]
            self._named[family, name] = ours if is_whole else []


def _add_imports(rules: Rules, facts: FileFacts, outline: Outline, found: FoundEdges) -> None:
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
            or not isinstance(target.where, Outline)
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


def _add_references(walk: Walk, facts: FileFacts, found: FoundEdges) -> list[Left]:
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
    walk: Walk, scope: int, receiver: str, name: str, found: FoundEdges
) -> tuple[list[int], float] | None:
    """The numbers of the nodes that a name means, with how sure that is: one node, or all overloads
    of it.
    """
    target = walk.target(scope, receiver, name)
    if target is not None and target.place < 0:
        target = walk.rules.meant(target)
    if target is None or target.is_instance or target.place < 0:
        return None
    where, place = target.where, target.place
    if not isinstance(where, Outline):
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


def _ends_with(qualname: str, wanted: str) -> bool:
    return qualname == wanted or qualname.endswith("." + wanted)


def _make_rules(family: str) -> Callable[[SymbolTable, ProjectFiles], Rules]:
    """The rules of a family of languages, imported when a file of it is met."""
    if family == "python":
        from smara.codegraph.resolve.python import PythonRules

        return PythonRules
    if family == "script":
        from smara.codegraph.resolve.script import ScriptRules

        return ScriptRules
    if family == "rust":
        from smara.codegraph.resolve.rust import RustRules

        return RustRules
    if family == "go":
        from smara.codegraph.resolve.go import GoRules

        return GoRules
    if family == "java":
        from smara.codegraph.resolve.java import JavaRules

        return JavaRules
    from smara.codegraph.resolve.c import CRules

    return CRules
