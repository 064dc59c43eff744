"""Locate the files that an issue or error message is about.

No model is called. The first line of an issue counts most; forms and links count nothing. A file
scores by its best three chunks, plus the names from the text that it defines. Examples,
documentation and vendored code are ranked lower.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from smara.codegraph.models import CodeLocation
from smara.core.terms import expand, fold
from smara.core.text import find_words
from smara.database.database import Session
from smara.errors import InvalidInputError
from smara.search.code import ChunkScore, CodeFileRow, CodeTrees, CodeWords, TreeChunks
from smara.search.query import STOP_WORDS

LONGEST = 100_000
MOST_LOOKED_UP = 160
"""So many terms of a text are looked up; of them, those that tell most are used."""
_TITLE = 3.0
_OFTEN = 2.1
"""What stands in the text three times or more counts twice; a log that repeats a name a hundred
times says no more.
"""
_PART, _NUMBER = 0.75, 0.3
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
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_ADDRESS = re.compile(r"https?://\S+")
_QUOTED = re.compile(r"`([^`\n]{1,400})`")
_NAME = re.compile(r"[^\W\d]\w*")
_CAMEL = re.compile(r"[a-z][A-Z]")
_MOST_NAMES = 400
_LONGEST_SHOWN = 80


@dataclass(frozen=True, slots=True)
class IssueTerms:
    """What a text about code is looked up by: terms with how much each is meant, and names that may
    be defined.
    """

    terms: dict[str, float]
    names: dict[str, float]
    words: dict[str, str]
    """A term → the word it comes from, as it was written first."""


def issue_terms(text: str) -> IssueTerms:
    """Read a text about code. Never raises; a long one is read up to a bound.

    >>> found = issue_terms("Session.close hangs\\n\\nIt waits in `drain_pool` for ever.")
    >>> found.terms["drainpool"], found.terms["hang"], sorted(found.names)
    (1.0, 3.0, ['Session', 'close', 'drain_pool', 'hangs'])
    """
    title, _, body = text[:LONGEST].lstrip().partition("\n")
    body = _ADDRESS.sub(" ", _COMMENT.sub(" ", body))
    terms: dict[str, float] = {}
    words: dict[str, str] = {}
    for term, kind in _counted(title, words):
        terms[term] = terms.get(term, 0.0) + _TITLE * _share(kind)
    for (term, kind), count in _counted(body, words).items():
        terms[term] = terms.get(term, 0.0) + min(1 + math.log(count), _OFTEN) * _share(kind)
    kept = sorted(terms, key=lambda term: (-terms[term], -len(term), term))[:MOST_LOOKED_UP]
    return IssueTerms({term: terms[term] for term in kept}, _names(title, body), words)


def _share(kind: str) -> float:
    return _PART if kind == "part" else _NUMBER if kind == "number" else 1.0


def _counted(text: str, words: dict[str, str]) -> Counter[tuple[str, str]]:
    counted: Counter[tuple[str, str]] = Counter()
    for word in find_words(text):
        if _says_nothing(fold(word).lower()):
            continue
        for term, kind in expand(word).terms:
            if not _says_nothing(term):
                counted[term, kind] += 1
                words.setdefault(term, word[:_LONGEST_SHOWN])
    return counted


def _says_nothing(word: str) -> bool:
    return len(word) < 2 or word in STOP_WORDS or word in _FORMS


def _names(title: str, body: str) -> dict[str, float]:
    """Names that may be defined somewhere, each with how much it is meant: once for a mention, more
    for repetition.
    """
    counted: Counter[str] = Counter()
    text = f"{title}\n{body}"
    for quoted in _QUOTED.findall(text):
        for name in _NAME.findall(quoted):
            counted[name] += 2
    for match in _NAME.finditer(text):
        name = match[0]
        before, after = text[match.start() - 1 : match.start()], text[match.end() : match.end() + 1]
        if len(name) > 2 and (
            "_" in name.strip("_") or _CAMEL.search(name) or after == "(" or before == "."
        ):
            counted[name] += 1
    counted.update(name for name in _NAME.findall(title) if len(name) > 3)
    return {
        name: 1 + 0.3 * math.log(count)
        for name, count in counted.most_common(_MOST_NAMES)
        if not _says_nothing(name.lower())
    }


MOST_FILES = 1_000
MOST_TERMS = 48
CANDIDATES = 1_000
_BEST_OF_A_FILE = 6
_DEFINES = 0.1
_ASIDE, _CARRIED = 0.7, 0.8
_ASIDE_FOLDERS = frozenset(
    {
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
    }
)
_ASIDE_FILES = frozenset({"setup.py", "conf.py"})
_CARRIED_FOLDERS = frozenset(
    {"vendor", "_vendor", "vendored", "third_party", "thirdparty", "extern"}
)
_KIND_SHARE = {"class": 1.0, "function": 1.0, "method": 0.8, "route": 0.8, "constant": 0.5}
_MOST_DEFINITIONS = 50
_SHOWN_TERMS = 4


@dataclass(slots=True)
class _FileScore:
    """A file while it is being judged: its best chunks, and the names it defines."""

    row: CodeFileRow
    chunks: list[tuple[float, int]] = field(default_factory=list)
    words: float = 0.0
    defines: float = 0.0
    names: list[str] = field(default_factory=list)


class CodeLocator:
    """Finds files of one tree by a text."""

    def __init__(
        self, trees: CodeTrees, tree_no: int, is_alone: Callable[[Session], bool], seconds: float
    ) -> None:
        self._trees = trees
        self._tree_no = tree_no
        self._is_alone = is_alone
        self._seconds = seconds

    def locate(
        self, text: str, limit: int = 10, *, tests: bool = False, graph: bool = True
    ) -> list[CodeLocation]:
        """The files a text is most likely about, the best first; tests only when asked for.

        ``graph`` false ranks by words alone, as one does who wants to know what the graph adds.
        """
        if not isinstance(text, str):
            raise InvalidInputError(f"text must be a text, not {type(text).__name__}.")
        if not isinstance(limit, int) or isinstance(limit, bool) or not 1 <= limit <= MOST_FILES:
            raise InvalidInputError(
                f"limit must be a whole number from 1 to {MOST_FILES}; got {limit!r}."
            )
        asked = issue_terms(text)
        with self._trees.store.database.read(self._seconds) as session:
            known = self._trees.chunks(session, self._tree_no)
            allowed = {
                no: row
                for no, row in known.files.items()
                if row.kind == "code" and (tests or not row.is_test)
            }
            scored = self._scored(session, known, allowed, asked)
            files = _judged(scored, known.file_of, allowed)
            if graph:
                self._define(session, files, allowed, names=asked.names)
            ranked = _ranked(files)[:limit]
            return self._answer(session, ranked, scored, asked.words)

    def _scored(
        self, session: Session, known: TreeChunks, allowed: Collection[int], asked: IssueTerms
    ) -> dict[int, ChunkScore]:
        chunks = {no for no, file_no in known.file_of.items() if file_no in allowed}
        wall = None if self._is_alone(session) else self._trees.store.scope.project_no
        words = CodeWords(
            session,
            self._trees.store.database.records,
            wall,
            chunks=chunks,
            total=len(chunks),
            terms=asked.terms,
            most_terms=MOST_TERMS,
        )
        return words.scored(CANDIDATES)

    def _define(
        self,
        session: Session,
        files: dict[int, _FileScore],
        allowed: Mapping[int, CodeFileRow],
        names: Mapping[str, float],
    ) -> None:
        """Add what files define of the names in a text; a name that several files define is shared
        among them.
        """
        places: dict[str, dict[int, float]] = {}
        for each in self._trees.defined(
            session, self._tree_no, list(names), limit=_MOST_DEFINITIONS
        ):
            if each.file_no in allowed:
                there = places.setdefault(each.name, {})
                there[each.file_no] = max(
                    there.get(each.file_no, 0.0), _KIND_SHARE.get(each.kind, 0.5)
                )
        for name, there in places.items():
            for file_no, share in there.items():
                file = files.setdefault(file_no, _FileScore(allowed[file_no]))
                file.defines += names[name] * share / len(there)
                file.names.append(name)

    def _answer(
        self,
        session: Session,
        ranked: list[tuple[float, _FileScore]],
        scored: Mapping[int, ChunkScore],
        words: Mapping[str, str],
    ) -> list[CodeLocation]:
        best = {file.row.no: file.chunks[0][1] for _, file in ranked if file.chunks}
        chunks = self._trees.store.chunks_by_number(session, list(best.values()))
        standing = self._trees.standing(session, [file.row.no for _, file in ranked])
        top = ranked[0][0] if ranked else 1.0
        found = []
        for score, file in ranked:
            chunk = chunks.get(best.get(file.row.no, -1))
            told = _reasons(
                file,
                scored[chunk.no] if chunk is not None else None,
                chunk.name if chunk else "",
                words=words,
            )
            place = (
                (chunk.name, chunk.first_line, chunk.last_line) if chunk is not None else ("", 1, 1)
            )
            is_stale = file.row.no not in standing or standing[file.row.no].is_stale
            found.append(
                CodeLocation(file.row.path, round(score / top, 4), tuple(told), *place, is_stale)
            )
        return found


def _judged(
    scored: Mapping[int, ChunkScore], file_of: Mapping[int, int], allowed: Mapping[int, CodeFileRow]
) -> dict[int, _FileScore]:
    files: dict[int, _FileScore] = {}
    for no, each in scored.items():
        file_no = file_of[no]
        files.setdefault(file_no, _FileScore(allowed[file_no])).chunks.append((each.score, no))
    for file in files.values():
        file.chunks.sort(key=lambda pair: (-pair[0], pair[1]))
        best = file.chunks[:_BEST_OF_A_FILE]
        file.words = _standing(file.row.path) * math.fsum(
            score / place for place, (score, _) in enumerate(best, 1)
        )
    return files


def _ranked(files: Mapping[int, _FileScore]) -> list[tuple[float, _FileScore]]:
    """Files with their scores, the best first. Both sides are put on a scale from 0 to 1 before
    they meet.
    """
    most_words = max((file.words for file in files.values()), default=0.0) or 1.0
    most_defined = max((file.defines for file in files.values()), default=0.0) or 1.0
    rated = [
        (math.sqrt(file.words / most_words) + _DEFINES * file.defines / most_defined, file)
        for file in files.values()
    ]
    return sorted(
        (pair for pair in rated if pair[0] > 0), key=lambda pair: (-pair[0], pair[1].row.path)
    )


def _standing(path: str) -> float:
    """How much a file counts by where it lies.

    >>> _standing("src/app/views.py"), _standing("docs/conf.py"), _standing("app/vendor/six.py")
    (1.0, 0.7, 0.8)
    """
    *folders, name = path.lower().split("/")
    aside = name in _ASIDE_FILES or not _ASIDE_FOLDERS.isdisjoint(folders)
    # At the top, ``packages`` holds the parts of the product; inside a package, those of others.
    carried = not _CARRIED_FOLDERS.isdisjoint(folders) or "packages" in folders[1:]
    return (_ASIDE if aside else 1.0) * (_CARRIED if carried else 1.0)


def _reasons(
    file: _FileScore, scored: ChunkScore | None, name: str, words: Mapping[str, str]
) -> list[str]:
    told = []
    if file.names:
        told.append("defines " + ", ".join(file.names[:_SHOWN_TERMS]))
    if scored is not None:
        best = dict.fromkeys(
            words[term] for term in sorted(scored.brought, key=lambda term: -scored.brought[term])
        )
        told.append(
            ", ".join(list(best)[:_SHOWN_TERMS])
            + (f" in {name}" if name else " beside its definitions")
        )
    return told
