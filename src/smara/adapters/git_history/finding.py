"""What a history has to tell: the candidates of its commits, gated and in order, without a memory
at hand.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from smara.adapters.git_history.chains import chains_of, fixes_of
from smara.adapters.git_history.log import Progress, files_of, past_commits, present_files
from smara.adapters.git_history.models import Candidate, Kind, PastCommit
from smara.adapters.git_history.worth import Present, about, is_long_ago
from smara.behavior.quoting import quote
from smara.behavior.reasons.reading import Reason, reason_of
from smara.behavior.reasons.reverts import Reverted, revert_of
from smara.behavior.reasons.text import subject_of

_MOST_FILES_NAMED = 6


@dataclass(slots=True)
class Found:
    """Candidates, the newest first, and what was left out on the way."""

    candidates: list[Candidate] = field(default_factory=list)
    commits: int = 0
    left_out: Counter[str] = field(default_factory=Counter)


def find_candidates(
    root: str, head: str, most_commits: int, progress: Progress | None = None
) -> Found:
    """Read the last commits of a history, and say what could be remembered of them."""
    commits = list(past_commits(root, head, most_commits, progress=progress))
    found = Found(commits=len(commits))
    if not commits:
        return found
    newest = max(each.at_ms for each in commits)
    recent = [each for each in commits if not is_long_ago(each.at_ms, newest)]
    said = _said(recent)
    fixes = fixes_of(recent)
    files = files_of(
        root, list(dict.fromkeys([*(each.sha for each in said), *(each.sha for each in fixes)]))
    )
    present = Present(present_files(root, head))
    for candidate in [*said, *chains_of(fixes, files)]:
        touched = candidate.files or files.get(candidate.sha, ())
        here, why_not = about(touched, present)
        if why_not is not None:
            found.left_out[why_not] += 1
        else:
            found.candidates.append(replace(candidate, files=here[:_MOST_FILES_NAMED]))
    found.candidates.sort(key=lambda each: -each.at_ms)
    return found


def _said(commits: Sequence[PastCommit]) -> list[Candidate]:
    """What single commits say; a revert is known to be final only when all newer commits were
    seen.
    """
    found: dict[str, Candidate] = {}
    done_later: set[str] = set()
    for commit in commits:
        made = revert_of(commit.message, done_later) or reason_of(commit.message)
        if made is not None:
            found.setdefault(
                made.content, _candidate(commit, made)
            )  # what was picked into other branches is one thing
        done_later.add(subject_of(commit.message.split("\n", 1)[0]).rstrip(".").casefold())
    return list(found.values())


def _candidate(commit: PastCommit, made: Reason | Reverted) -> Candidate:
    said = quote(f"{commit.message.split(chr(10), 1)[0]}\n{made.why}", 600)
    kind: Kind = "revert" if isinstance(made, Reverted) else made.kind
    return Candidate(
        kind,
        made.type,
        made.content,
        quotes=((commit.sha, said),),
        at_ms=commit.at_ms,
        author=commit.author,
        data=made.fields,
    )
