"""Locate the files that an issue or error message is about.

No model is called. The first line of an issue counts most; forms and links count nothing. A file
scores by its best three chunks, plus the names from the text that it defines. Examples,
documentation and vendored code are ranked lower.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping

from smara.codegraph.models import CodeLocation
from smara.core.startup.record import dataclass, field
from smara.core.startup.regex import re, regex
from smara.core.terms import expand, fold
from smara.core.text import find_words
from smara.database.database import Session
from smara.errors import InvalidInputError
from smara.search.bm25 import IndexMatches, LookupTerm, RowScore, rarity
from smara.search.code import MOST_ROWS, CodeFileRow, CodeTrees, TreeChunks, code_reasons
from smara.search.languages import STOP_WORDS
from smara.search.query import shown_term
from smara.search.weights import WEIGHTS, IssueWeights, Weights

LONGEST = 100_000
# So many terms of a text are looked up; of them, those that tell most are used.
MOST_LOOKED_UP = 160
_FORM_WORDS = (
    "describe bug reproduce expected behavior behaviour environment info python version versions "
    "os linux windows mac"
    " macos pip install installed screenshots additional context steps problem issue example code "
    "output actual result"
    " results using use used run running get make like following error traceback current "
    "currently want see add new"
    " work works feature request solution alternatives question thanks"
)
_FORMS = frozenset(_FORM_WORDS.split())
_COMMENT = regex(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_ADDRESS = regex(r"https?://\S+")
_QUOTED = regex(r"`([^`\n]{1,400})`")
_NAME = regex(r"[^\W\d]\w*")
_CAMEL = regex(r"[a-z][A-Z]")
_MOST_NAMES = 400
_LONGEST_SHOWN = 80


MOST_FILES = 1_000
MOST_TERMS = 48
CANDIDATES = 1_000
_ASIDE_FOLDERS = frozenset(
    [
        "doc",
        "docs",
        "example",
        "examples",
        "sample",
        "samples",
        "demo",
        "demos",
        "benchmark",
        "benchmarks",
        "asv_bench",
    ]
)
_ASIDE_FILES = frozenset({"setup.py", "conf.py"})
_CARRIED_FOLDERS = frozenset(
    {"vendor", "_vendor", "vendored", "third_party", "thirdparty", "extern"}
)
_MOST_DEFINITIONS = 50
_SHOWN_TERMS = 4
_MOST_HELD = 6


@dataclass(frozen=True, slots=True)
class IssueTerms:
    """The terms and names of a text about code, with weights."""

    terms: dict[str, float]
    names: dict[str, float]
    words: dict[str, str]
    """A term → the word it comes from, as it was written first."""


def issue_terms(text: str, weights: Weights = WEIGHTS) -> IssueTerms:
    """Return the terms of any text about code, up to a bound.

    >>> found = issue_terms("Session.close hangs\\n\\nIt waits in `drain_pool` for ever.")
    >>> found.terms["drainpool"], found.terms["hang"], sorted(found.names)
    (1.0, 3.0, ['Session', 'close', 'drain_pool', 'hangs'])
    """
    title, _, body = text[:LONGEST].lstrip().partition("\n")
    body = _ADDRESS.sub(" ", _COMMENT.sub(" ", body))
    issue = weights.issues
    shares = {"part": weights.code_words.part_weight, "number": issue.number_weight}
    terms: dict[str, float] = {}
    words: dict[str, str] = {}
    for term, kind in _counted(title, words):
        terms[term] = terms.get(term, 0.0) + issue.title * shares.get(kind, 1.0)
    for (term, kind), count in _counted(body, words).items():
        repeated = min(1 + math.log(count), issue.most_repeated)
        terms[term] = terms.get(term, 0.0) + repeated * shares.get(kind, 1.0)
    best = sorted(terms, key=lambda term: (-terms[term], -len(term), term))[:MOST_LOOKED_UP]
    names = _names(title, body, issue.repeated_name)
    return IssueTerms({term: terms[term] for term in best}, names, words)


def _counted(text: str, words: dict[str, str]) -> Counter[tuple[str, str]]:
    counted: Counter[tuple[str, str]] = Counter()
    for word in find_words(text):
        if _says_nothing(fold(word).lower()):
            continue
        for term, kind in expand(word).terms:
            if not _says_nothing(term):
                counted[term, kind] += 1
                shown = word[:_LONGEST_SHOWN]
                words.setdefault(term, shown_term(term, kind, shown))
    return counted


def _says_nothing(word: str) -> bool:
    return len(word) < 2 or word in STOP_WORDS or word in _FORMS


def _names(title: str, body: str, repeated_weight: float) -> dict[str, float]:
    """Return names that may be defined somewhere: 1 for a mention, more for repetition."""
    counted: Counter[str] = Counter()
    text = f"{title}\n{body}"
    for quoted in _QUOTED.findall(text):
        counted.update(2 * _NAME.findall(quoted))
    for match in _NAME.finditer(text):
        name = match[0]
        before, after = text[match.start() - 1 : match.start()], text[match.end() : match.end() + 1]
        if len(name) > 2 and (
            "_" in name.strip("_") or _CAMEL.search(name) or after == "(" or before == "."
        ):
            counted[name] += 1
    counted.update(name for name in _NAME.findall(title) if len(name) > 3)
    return {
        name: 1 + repeated_weight * math.log(count)
        for name, count in counted.most_common(_MOST_NAMES)
        if not _says_nothing(name.lower())
    }


@dataclass(slots=True)
class _FileScore:
    """A file while it is scored: its best chunks, and the names it defines."""

    row: CodeFileRow
    chunks: list[tuple[float, int]] = field(default_factory=list)
    words: float = 0.0
    defines: float = 0.0
    names: list[str] = field(default_factory=list)
    score: float = 0.0


@dataclass(frozen=True, eq=False)
class CodeLocator:
    """Finds files of one tree by a text."""

    trees: CodeTrees
    tree_no: int
    is_alone: Callable[[Session], bool]
    seconds: float
    weights: Weights = WEIGHTS

    def locate(
        self, text: str, limit: int = 10, *, tests: bool = False, graph: bool = True
    ) -> list[CodeLocation]:
        """Return the files that a text is about, the best first.

        Args:
            text: An issue, an error message or a question.
            limit: How many files, at most 1,000.
            tests: Include files of tests.
            graph: Count the names that files define; False ranks by words alone.

        Raises:
            InvalidInputError: The text is not a string, or the limit is out of range.
        """
        if not isinstance(text, str):
            raise InvalidInputError(f"text must be a text, not {type(text).__name__}.")
        if not isinstance(limit, int) or isinstance(limit, bool) or not 1 <= limit <= MOST_FILES:
            raise InvalidInputError(
                f"limit must be a whole number from 1 to {MOST_FILES}; got {limit!r}."
            )
        issue = issue_terms(text, self.weights)
        with self.trees.store.database.read(self.seconds) as session:
            tree = self.trees.chunks(session, self.tree_no)
            allowed = {
                no: row
                for no, row in tree.files.items()
                if row.kind == "code" and (tests or not row.is_test)
            }
            chunks = {no for no, file_no in tree.file_of.items() if file_no in allowed}
            store = self.trees.store
            matches = IndexMatches(
                session,
                store.database.records,
                "code",
                project_no=None if self.is_alone(session) else store.scope.project_no,
                total=len(chunks),
                terms={
                    term: LookupTerm(share, issue.words[term])
                    for term, share in issue.terms.items()
                },
                weights=self.weights.code_words,
                most_rows=MOST_ROWS,
                within=chunks,
                most_terms=MOST_TERMS,
                skips_common=True,
            )
            scored = matches.scored(CANDIDATES, counts_head=False)
            files = self._by_words(scored, tree, allowed)
            if graph:
                self._define(session, files, allowed, names=issue.names)
            # Words and names are both put on a scale to 1.
            most_words = max((file.words for file in files.values()), default=0.0) or 1.0
            most_defined = max((file.defines for file in files.values()), default=0.0) or 1.0
            for file in files.values():
                file.score = (
                    math.sqrt(file.words / most_words)
                    + self.weights.issues.defines * file.defines / most_defined
                )
            ranked = sorted(
                (file for file in files.values() if file.score > 0),
                key=lambda file: (-file.score, file.row.path),
            )
            worths = {
                term: share * rarity(matches.frequencies[term], len(chunks))
                for term, share in issue.terms.items()
                if matches.frequencies[term] <= MOST_ROWS
            }
            return self._answer(session, ranked[:limit], scored, worths, issue.words)

    def _by_words(
        self, scored: Mapping[int, RowScore], tree: TreeChunks, allowed: Mapping[int, CodeFileRow]
    ) -> dict[int, _FileScore]:
        """Return the files of scored chunks; a file scores by its best chunks."""
        files: dict[int, _FileScore] = {}
        for no, each in scored.items():
            file_no = tree.file_of[no]
            files.setdefault(file_no, _FileScore(allowed[file_no])).chunks.append((each.score, no))
        for file in files.values():
            file.chunks.sort(key=lambda pair: (-pair[0], pair[1]))
            best = file.chunks[: self.weights.issues.best_chunks]
            file.words = _standing(file.row.path, self.weights.issues) * math.fsum(
                score / place for place, (score, _) in enumerate(best, 1)
            )
        return files

    def _define(
        self,
        session: Session,
        files: dict[int, _FileScore],
        allowed: Mapping[int, CodeFileRow],
        names: Mapping[str, float],
    ) -> None:
        """Add what files define of the names; several files share a name they all define."""
        kinds = self.weights.issues.kinds
        places: dict[str, dict[int, float]] = {}
        for each in self.trees.defined(session, self.tree_no, list(names), limit=_MOST_DEFINITIONS):
            if each.file_no in allowed:
                there = places.setdefault(each.name, {})
                share = kinds.get(each.kind, kinds["constant"])
                there[each.file_no] = max(there.get(each.file_no, 0.0), share)
        for name, there in places.items():
            for file_no, share in there.items():
                file = files.setdefault(file_no, _FileScore(allowed[file_no]))
                file.defines += names[name] * share / len(there)
                file.names.append(name)

    def _answer(
        self,
        session: Session,
        ranked: list[_FileScore],
        scored: Mapping[int, RowScore],
        worths: Mapping[str, float],
        words: Mapping[str, str],
    ) -> list[CodeLocation]:
        # No piece holds all of a long text: so many terms are all of it.
        enough = min(sum(worths.values()), _MOST_HELD * max(worths.values(), default=0.0)) or 1.0
        best = {file.row.no: file.chunks[0][1] for file in ranked if file.chunks}
        chunks = self.trees.store.chunks_by_number(session, list(best.values()))
        standing = self.trees.standing(session, [file.row.no for file in ranked])
        found = []
        for file in ranked:
            chunk = chunks.get(best.get(file.row.no, -1))
            why = ["defines " + ", ".join(file.names[:_SHOWN_TERMS])] if file.names else []
            terms = {term for name in file.names for term, _ in expand(name).terms}
            place = ("", 1, 1)
            if chunk is not None:
                place = (chunk.name, chunk.first_line, chunk.last_line)
                by_term = scored[chunk.no].by_term
                terms |= by_term.keys()
                reasons = code_reasons(words, by_term, chunk.text, path=file.row.path)
                name = chunk.name or "its lines beside definitions"
                for kind, where in (("code", name), ("path", "its path")):
                    if parts := [word for word, at in reasons.items() if at == kind]:
                        why.append(f"{', '.join(parts)} in {where}")
            is_stale = file.row.no not in standing or standing[file.row.no].is_stale
            score = round(min(1.0, sum(worths.get(term, 0.0) for term in terms) / enough), 4)
            found.append(CodeLocation(file.row.path, score, tuple(why), *place, is_stale))
        return found


def _standing(path: str, weights: IssueWeights) -> float:
    """Return how much a file counts by where it lies.

    >>> [_standing(path, IssueWeights()) for path in ("src/a.py", "docs/conf.py", "a/vendor/b.py")]
    [1.0, 0.7, 0.8]
    """
    *folders, name = path.lower().split("/")
    aside = name in _ASIDE_FILES or not _ASIDE_FOLDERS.isdisjoint(folders)
    # At the top, ``packages`` holds the parts of the product; inside a package, those of others.
    carried = not _CARRIED_FOLDERS.isdisjoint(folders) or "packages" in folders[1:]
    return (weights.aside if aside else 1.0) * (weights.carried if carried else 1.0)
