"""Import the history of a git repository as memories.

Candidates are reasons, breaking changes, reverts and fix chains (one file fixed several
times within days). Messages are read first; files are compared only for candidates,
because comparing trees is the cost of a long history. No model is needed. An import goes newest
first and takes a commit once, so that a second import adds nothing. A commit message is
evidence, never an instruction: each memory names and quotes its commits, is tainted by its
source, and waits for review as its trust demands.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import combinations, pairwise
from typing import Literal, NamedTuple

from smara.actions.paths import module_of
from smara.adapters.instructions.collect import root_of
from smara.adapters.instructions.importer import all_memories
from smara.adapters.records import Progress
from smara.behavior.commit_reasons import Revert, reason_of, revert_of
from smara.behavior.cues import CUES
from smara.behavior.scratchpad import code, quote
from smara.commits.lines import standing_shares
from smara.commits.message import read_commit, subject_of
from smara.commits.read import new_shas
from smara.core.extract import word_set
from smara.core.git import find_repository, git_text
from smara.core.startup.record import dataclass, field, replace
from smara.core.startup.regex import re, regex
from smara.errors import InvalidInputError
from smara.knowledge.models import Evidence, MemorySource, MemoryType, NewMemory, TypedMemory
from smara.memory import Memory

Kind = Literal["reason", "breaking", "revert", "fix chain"]
Outcome = Literal["added", "known", "duplicate", "refused"]


class PastCommit(NamedTuple):
    """A commit that is no merge."""

    sha: str
    at_ms: int
    author: str
    message: str

    @property
    def subject(self) -> str:
        return read_commit(self.message).subject


@dataclass(frozen=True, slots=True)
class CommitCandidate:
    """Something that commits say and that may be worth remembering.

    Attributes:
        quotes: Pairs of a commit and the words in it that say so; the first commit is the one it is
            known by.
    """

    kind: Kind
    type: MemoryType
    content: str
    quotes: tuple[tuple[str, str], ...]
    at_ms: int
    author: str
    files: tuple[str, ...] = ()
    data: dict[str, str] = field(default_factory=dict)

    @property
    def sha(self) -> str:
        return self.quotes[0][0]


@dataclass(frozen=True, slots=True)
class CandidateChange:
    """One candidate, and what became of it."""

    outcome: Outcome
    kind: Kind
    type: str
    content: str
    sha: str
    at_ms: int
    memory_id: str | None = None
    why: tuple[str, ...] = ()


@dataclass(slots=True)
class GitReport:
    """The result of importing a history, or of its dry run.

    Attributes:
        commits: How many commits were read.
        is_all: Whether the history ends there; ``False`` when older commits were not looked at.
        left_out: How many commits that seemed to tell something were left out, by the reason.
        cut: How many candidates were beyond the limit.
        warmed_commits: How many commits were counted for files that change together; ``None`` when
            that was not done.
        left_for_later: How many files the repository has, when its code was not indexed because
            they are many.
    """

    root: str
    is_dry_run: bool = False
    commits: int = 0
    is_all: bool = True
    left_out: Counter[str] = field(default_factory=Counter)
    changes: list[CandidateChange] = field(default_factory=list)
    cut: int = 0
    warmed_commits: int | None = None
    left_for_later: int | None = None

    @property
    def counts(self) -> Counter[str]:
        """The number of candidates by outcome."""
        return Counter(each.outcome for each in self.changes)


PAGE = 400
_AT_ONCE = 200
_DEADLINE_SECONDS = 60.0
_LOG = ("log", "--no-color", "--no-ext-diff")
_NAMES_OF_FILES = (
    "--no-walk=unsorted", "--name-only", "--no-renames", "-z", "--relative", "--no-textconv",
)  # fmt: skip
_RECORD, _FIELD = "\x1e", "\x1f"
_MESSAGES = f"--format={_RECORD}%H{_FIELD}%ct{_FIELD}%ae{_FIELD}%B"


def past_commits(
    root: str, shas: Sequence[str], progress: Progress | None = None
) -> Iterator[PastCommit]:
    """Yield commits with their messages, in the order given."""
    for start in range(0, len(shas), PAGE):
        some = shas[start : start + PAGE]
        text = _git(root, *_LOG, "--no-walk=unsorted", "--no-notes", _MESSAGES, *some, "--")
        records = (record.split(_FIELD, 3) for record in (text or "").split(_RECORD)[1:])
        page = [each for each in records if len(each) == 4 and each[1].isdigit()]
        for sha, at, author, message in page:
            yield PastCommit(sha, int(at) * 1000, author.strip().casefold(), message.strip())
        if progress:
            progress(start + len(some), len(shas))


def files_of(root: str, shas: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the files that commits changed, as seen from the folder."""
    found: dict[str, tuple[str, ...]] = {}
    for start in range(0, len(shas), _AT_ONCE):
        some = (f"--format={_RECORD}%H{_FIELD}", *shas[start : start + _AT_ONCE], "--")
        for record in (_git(root, *_LOG, *_NAMES_OF_FILES, *some) or "").split(_RECORD)[1:]:
            sha, _, rest = record.partition(_FIELD)
            names = [name.lstrip("\n") for name in rest.split("\0")]
            found[sha] = tuple(name for name in names if name and "\ufffd" not in name)
    return found


def present_files(root: str, head: str) -> frozenset[str]:
    """Every file that is in the tree now."""
    return frozenset((_git(root, "ls-tree", "-r", "--name-only", "-z", head) or "").split("\0")) - {
        ""
    }


def _git(root: str, *arguments: str) -> str | None:
    return git_text(root, *arguments, timeout_seconds=_DEADLINE_SECONDS)


# A commit that touches more files speaks of none of them.
MOST_FILES = 20
# Older than this, seen from the last commit, code has mostly been written again; what its commits
# say is past.
MOST_YEARS = 6
_YEAR_MS = 365 * 86_400_000
_NOT_CODE = regex(
    r"(?:^|/)(?:docs?|documentation|examples?|samples?|\.github|\.circleci|\.azure|changelog\.d"
    r"|changes|news|changelog"
    r"|licenses?|scripts?|ci|hack|locale|translations?|i18n|fixtures?|snapshots?|__snapshots__"
    r"|testdata|vendor|third_party)/"
    r"|(?:^|/)(?:changelog|changes|history|authors|contributors|readme|license|licence|notice"
    r"|news|codeowners|security"
    r"|contributing|code_of_conduct|todo)[\w.-]*$|\.(?:md|rst|txt|po|pot|mo|lock|svg|png|jpg|gif"
    r"|ico|snap|toml|cfg|ini|ya?ml|json|csv|map)$"
    r"|(?:^|/)(?:go\.sum|go\.mod|pom\.xml|[^/]*\.gradle(?:\.kts)?|CMakeLists\.txt|setup\.py"
    r"|\.gitignore|\.gitattributes|\.mailmap|\.editorconfig|Makefile|Dockerfile)$",
    re.IGNORECASE,
)
_TEST = regex(
    r"(?:^|/)(?:[^/]*-)?(?:tests?|testing|spec|specs|__tests__|e2e|bench\w*|perf)/|^t/|(?:^"
    r"|/)(?:test_[^/]*|conftest)\.py$"
    r"|(?:^|/)[^/]*(?:_test|\.test|\.spec|-test|Test|Tests|IT|_spec)\.\w+$"
)


def is_code(path: str) -> bool:
    """Return True if a file is code: no test, documentation or output."""
    return not _NOT_CODE.search(path) and not _TEST.search(path)


class Present:
    """The files that exist now.

    A file that was moved as a whole folder was, is found by the rest of its path.
    """

    def __init__(self, paths: Iterable[str]) -> None:
        self._paths = frozenset(paths)
        self._by_name: dict[str, list[str]] = {}
        for path in self._paths:
            self._by_name.setdefault(path.rpartition("/")[2], []).append(path)

    def find(self, path: str) -> str | None:
        """Return the present path of a former file.

        ``requests/api.py`` may be ``src/requests/api.py``.
        """
        if path in self._paths:
            return path
        near = [
            each
            for each in self._by_name.get(path.rpartition("/")[2], ())
            if each.endswith(f"/{path}") or (path.endswith(f"/{each}") and "/" in each)
        ]
        return near[0] if len(near) == 1 else None


def about(files: Sequence[str], present: Present) -> tuple[tuple[str, ...], str | None]:
    """Return the existing code files of a commit, or why none counts."""
    if len(files) > MOST_FILES:
        return (), f"it changed more than {MOST_FILES} files at once"
    code = tuple(path for path in files if is_code(path))
    if not code:
        return (), "it changed only tests, pages or settings"
    here = tuple(dict.fromkeys(filter(None, map(present.find, code))))
    return here, None if here else "its files are not there any more"


LEAST_FIXES = 3
WITHIN_DAYS = 14
MOST_CHAINS = 15
MOST_FIXES_READ = 3_000
# A fix of more files is no fix of one of them.
_MOST_FILES = 4
_USUAL_SHARE = 0.3
_DAY_MS = 86_400_000
_FIX = regex(
    r"^(?:\[[^\]]{1,30}\]\s*)?(?:fix(?:e[sd])?\b(?!ture)|bug ?fix|hot ?fix|repair|mend"
    r"|correct(?:ed|s)?\b"
    r"|resolve[sd]?\b|regression|follow[- ]up|really|actually)",
    re.I,
)
_NOT_A_FIX = regex(
    r"\b(?:typos?|docs?|documentation|docstrings?|comments?|spelling|grammar|lint\w*|format\w*"
    r"|style|flake8|tests?|"
    r"flaky|ci|build|links?|warnings?|mypy|types?|typing|annotations?|whitespace|indent\w*"
    r"|imports?|readme|changelog|"
    r"version|wording|example|occurr?ences|lints?|phpstan|psalm|eslint|clippy)\b",
    re.I,
)
_WORD = regex(r"[a-z_][a-z0-9_]{3,}")
_COMMON = word_set(
    "fixed fixes when with from that this into some wrong correct corrected handling error errors "
    "crash issue issues"
    " problem case cases regression properly using used after before which should missing support "
    "make made"
)
_MENDS = regex(
    r"\b(?:regression (?:in|from|of|introduced)|broken (?:in|by|since)|introduced (?:in|by)"
    r"|follow(?:s|ed|ing)?[- ]?up"
    r" (?:to|on|of)|fixes:?|bug in|caused by) (?:commit )?[0-9a-f]{7,40}\b",
    re.I,
)


def fixes_of(commits: Sequence[PastCommit]) -> list[PastCommit]:
    """The commits that mend something, the newest first and not too many."""
    fixes = []
    for commit in commits:
        subject = read_commit(commit.message.split("\n", 1)[0])
        is_named_so = _FIX.match(subject.first_line) or _FIX.match(subject.subject)
        is_other = _NOT_A_FIX.search(subject.subject) or CUES["empty subject"].search(
            subject.first_line
        )
        if is_named_so and not is_other:
            fixes.append(commit)
    if len(fixes) > _USUAL_SHARE * len(commits):
        fixes = [each for each in fixes if _MENDS.search(each.message)]
    return fixes[:MOST_FIXES_READ]


def chains_of(
    fixes: Sequence[PastCommit], files: Mapping[str, Sequence[str]]
) -> list[CommitCandidate]:
    """Return a candidate for the newest chain of fixes of each file.

    Each commit belongs to one chain alone.
    """
    by_file: dict[str, list[PastCommit]] = {}
    for fix in fixes:
        touched = [path for path in files.get(fix.sha, ()) if is_code(path)]
        for path in touched if len(touched) <= _MOST_FILES else ():
            by_file.setdefault(path, []).append(fix)
    chains = [(path, chain) for path, some in by_file.items() if (chain := _newest_chain(some))]
    chains.sort(key=lambda each: (-each[1][-1].at_ms, -len(each[1]), each[0]))
    used: set[str] = set()
    candidates: list[CommitCandidate] = []
    for path, chain in chains:
        if not used.isdisjoint(each.sha for each in chain) or len(candidates) == MOST_CHAINS:
            continue
        used.update(each.sha for each in chain)
        newest = chain[-1]
        subjects = [quote(each.subject, 140).rstrip(".") for each in chain]
        first, last = (
            datetime.fromtimestamp(each.at_ms / 1000, UTC).date() for each in (chain[0], newest)
        )
        days = (last - first).days + 1
        spread = "in one day" if days == 1 else f"within {days} days"
        listing = "; ".join(f"“{each}”" for each in subjects[:6])
        candidates.append(
            CommitCandidate(
                "fix chain",
                "gotcha",
                f"{code(path)} had to be fixed {len(chain)} times {spread} (until "
                f"{last.isoformat()}): {listing}.",
                quotes=tuple(
                    (each.sha, quote(each.message.split("\n", 1)[0], 300))
                    for each in reversed(chain)
                ),
                at_ms=newest.at_ms,
                author=newest.author,
                files=(path,),
                data={"symptom": quote("; ".join(subjects), 400)},
            )
        )
    return candidates


def _newest_chain(fixes: Sequence[PastCommit]) -> list[PastCommit]:
    """The newest run of fixes that lie close enough together, the oldest first; empty when there is
    none.
    """
    ordered = sorted(fixes, key=lambda each: each.at_ms)
    runs: list[list[PastCommit]] = [ordered[:1]]
    for before, after in pairwise(ordered):
        if before.subject == after.subject:
            continue  # a commit that was picked into another branch is one fix
        if after.at_ms - runs[-1][0].at_ms > WITHIN_DAYS * _DAY_MS:
            runs.append([])
        runs[-1].append(after)
    for run in reversed(runs):
        # Without the fixes that were made again on other branches, in between others.
        once = [*{each.subject: each for each in reversed(run)}.values()][::-1]
        related = _about_one_thing(once) if len(run) >= LEAST_FIXES else []
        if len(related) >= LEAST_FIXES:
            return related
    return []


def _about_one_thing(run: Sequence[PastCommit]) -> list[PastCommit]:
    """The most fixes of a run that have the same two words: a busy file is mended often, for
    reasons of all kinds.
    """
    subjects = [set(_WORD.findall(each.subject.casefold())) - _COMMON for each in run]
    pairs = Counter(pair for words in subjects for pair in combinations(sorted(words), 2))
    shared = set(min(pairs.items(), key=lambda each: (-each[1], each[0]))[0]) if pairs else {""}
    return [each for each, words in zip(run, subjects, strict=True) if shared <= words]


_MOST_FILES_NAMED = 6
_LEAST_STANDING = 0.4
"""Of the lines that a commit set; with fewer, what it says may not hold any more."""


def find_candidates(
    report: GitReport, head: str, most_commits: int, progress: Progress | None = None
) -> list[CommitCandidate]:
    """Return what the last commits say, the newest first.

    The report is told how many commits were read, whether these are all, and what was left out.
    """
    shas = new_shas(report.root, most_commits + 1)
    commits = list(past_commits(report.root, shas[:most_commits], progress))
    report.commits = len(commits)
    report.is_all = len(shas) <= most_commits
    newest = max((each.at_ms for each in commits), default=0)
    recent = [each for each in commits if newest - each.at_ms <= MOST_YEARS * _YEAR_MS]
    statements = _statements(recent)
    fixes = fixes_of(recent)
    speaking = dict.fromkeys(each.sha for some in (statements, fixes) for each in some)
    files = files_of(report.root, list(speaking))
    present = Present(present_files(report.root, head))
    candidates = []
    shares = standing_shares(
        report.root,
        [each.sha for each in statements if each.kind in ("reason", "breaking")],
        lambda path: present.find(path) if is_code(path) else None,
    )
    for candidate in [*statements, *chains_of(fixes, files)]:
        here, why_not = about(candidate.files or files.get(candidate.sha, ()), present)
        if why_not is None and shares.get(candidate.sha, 1.0) < _LEAST_STANDING:
            why_not = "most of its lines were changed since"
        if why_not is not None:
            report.left_out[why_not] += 1
        else:
            candidates.append(replace(candidate, files=here[:_MOST_FILES_NAMED]))
    return sorted(candidates, key=lambda each: -each.at_ms)


def _statements(commits: Sequence[PastCommit]) -> list[CommitCandidate]:
    """What single commits say; a revert is known to be final only when all newer commits were
    seen.
    """
    found: dict[str, CommitCandidate] = {}
    done_later: set[str] = set()
    for commit in commits:
        first_line = commit.message.split("\n", 1)[0]
        reason = revert_of(commit.message, done_later) or reason_of(commit.message)
        # What was picked into other branches is one thing.
        if reason is not None and reason.content not in found:
            found[reason.content] = CommitCandidate(
                "revert" if isinstance(reason, Revert) else reason.kind,
                reason.type,
                reason.content,
                quotes=((commit.sha, quote(f"{first_line}\n{reason.why}", 600)),),
                at_ms=commit.at_ms,
                author=commit.author,
                data=reason.fields,
            )
        done_later.add(subject_of(first_line).rstrip(".").casefold())
    return list(found.values())


_SHORT = 7


class CommitIndex:
    """The memories that rest on commits, by commit; chains of fixes apart."""

    def __init__(self, memories: Iterable[TypedMemory]) -> None:
        self._memories: dict[tuple[bool, str], list[tuple[str, TypedMemory]]] = {}
        for memory in memories:
            commits = {each.commit.lower() for each in memory.evidence if each.commit}
            for sha in commits | ({memory.commit.lower()} if memory.commit else set()):
                key = "fix-chain" in memory.tags, sha[:_SHORT]
                self._memories.setdefault(key, []).append((sha, memory))

    def find(self, candidate: CommitCandidate) -> tuple[TypedMemory | None, TypedMemory | None]:
        """Return the memory that covers a candidate, and its older chain.

        A chain is covered by one that has its newest fix, or that a person put aside.
        """
        is_chain = candidate.kind == "fix chain"
        same = self._find(candidate.sha, is_chain)
        if not is_chain:
            return same, None
        chains = [each for sha, _ in candidate.quotes if (each := self._find(sha, is_chain))]
        older = next((each for each in chains if each.is_active), chains[0] if chains else None)
        return same or (older if older and not older.is_active else None), older

    def _find(self, sha: str, is_chain: bool) -> TypedMemory | None:
        near = self._memories.get((is_chain, sha[:_SHORT]), ())
        return next(
            (memory for own, memory in near if sha.startswith(own) or own.startswith(sha)), None
        )


SOURCE: MemorySource = "commit_auto"
MOST_COMMITS = 20_000
# So many of the newest are taken in one go: more would bury what is learned from work itself.
MOST_MEMORIES = 100
# Repositories up to this size are indexed without being asked: some twenty seconds at most.
MOST_FILES_UNASKED = 5_000
_BATCH = 25
_CONFIDENCE = {"reason": 0.7, "breaking": 0.75, "revert": 0.75, "fix chain": 0.6}


def import_history(
    memory: Memory,
    root: str | os.PathLike[str] | None = None,
    *,
    is_dry_run: bool = False,
    most_commits: int = MOST_COMMITS,
    limit: int = MOST_MEMORIES,
    actor: str | None = None,
    progress: Progress | None = None,
) -> GitReport:
    """Import memories from the commits of a repository.

    Without a root, it is the repository around the current folder.

    Looks at the last ``most_commits`` commits and takes the ``limit`` newest things they say. A
    commit that a memory knows already, also one that was forgotten or rejected, is not taken again.
    """
    if most_commits < 1 or limit < 1:
        raise InvalidInputError("The numbers of commits and of memories must be at least 1.")
    folder = os.path.realpath(root_of(root))
    head = (_git(folder, "rev-parse", "--verify", "--quiet", "HEAD") or "").strip()
    if not head:
        raise InvalidInputError(
            f"{folder} is no git repository with commits. Go into one, or name it: `smara import "
            "--from git FOLDER`.",
            path=folder,
        )
    report = GitReport(folder, is_dry_run)
    candidates = find_candidates(report, head, most_commits, progress=progress)
    report.cut = len(candidates[limit:])
    index = CommitIndex(all_memories(memory, SOURCE))
    mine = (_git(folder, "config", "--get", "user.email") or "").strip().casefold()
    fresh: list[tuple[CommitCandidate, NewMemory]] = []
    for each in candidates[:limit]:
        holder, older = index.find(each)
        if holder is not None:
            _tell(report, "known", each, memory=holder, why=("its commit is known",))
        elif is_dry_run:
            _tell(report, "added", each)
        else:
            fresh.append((each, _new(each, mine, older)))
    # In batches: an import that is interrupted keeps what it has, and goes on from there.
    for start in range(0, len(fresh), _BATCH):
        some = fresh[start : start + _BATCH]
        results = memory.memories.add_many([new for _, new in some], by="system", actor=actor)
        for (candidate, _), added in zip(some, results, strict=True):
            _tell(report, added.outcome, candidate, memory=added.memory, why=added.why)
    return report


def warm_up(
    memory: Memory, report: GitReport, progress: Progress | None = None, *, code: bool | None = None
) -> None:
    """Index the code and count which files change together.

    The report says how many commits were counted. Unless the caller decides (``code``), a large
    repository without an index is left for later: its memories are there in seconds, its index may
    take minutes. Nothing is done in a dry run, nor where no files are checked out.
    """
    folder = report.root
    is_checked_out = os.path.lexists(os.path.join(folder, ".git"))
    if report.is_dry_run or find_repository(folder) is None or not is_checked_out:
        return
    if code is None and memory.code.status(folder).state == "none":
        files = len(present_files(folder, "HEAD"))
        report.left_for_later = files if files > MOST_FILES_UNASKED else None
    if code is not False and report.left_for_later is None:
        memory.code.index(folder, progress=progress)
        report.warmed_commits = memory.code.asking(folder).history.read().commits


def _new(candidate: CommitCandidate, mine: str, older: TypedMemory | None) -> NewMemory:
    modules = tuple(dict.fromkeys(filter(None, map(module_of, candidate.files))))[:3]
    # A memory that a person confirmed is not replaced.
    is_replaced = older is not None and not (older.is_verified or older.is_pinned)
    return NewMemory(
        candidate.content,
        candidate.type,
        SOURCE,
        confidence=_CONFIDENCE[candidate.kind],
        tags=("git", candidate.kind.replace(" ", "-")),
        files=candidate.files,
        modules=modules,
        seen_at=candidate.at_ms,
        commit=candidate.sha,
        evidence=[Evidence(commit=sha, quote=words) for sha, words in candidate.quotes],
        data=dict(candidate.data),
        # What another person wrote is that person's word, also in our own repository.
        taint=() if mine and candidate.author == mine else ("other",),
        supersedes=(older.id,) if older is not None and is_replaced else (),
    )


def _tell(
    report: GitReport,
    outcome: Outcome,
    candidate: CommitCandidate,
    *,
    memory: TypedMemory | None = None,
    why: Sequence[str] = (),
) -> None:
    report.changes.append(
        CandidateChange(
            outcome,
            candidate.kind,
            candidate.type,
            content=candidate.content,
            sha=candidate.sha,
            at_ms=candidate.at_ms,
            memory_id=memory.short_id if memory is not None else None,
            why=tuple(why),
        )
    )
