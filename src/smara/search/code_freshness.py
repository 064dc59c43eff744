"""What a hit says of the code it names: the verdict, what has to be said beside it, and where the
code is now.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from smara.core import log
from smara.core.freshness import Freshness
from smara.database.database import Session
from smara.errors import DeadlineError, SmaraError

CodeJudge = Callable[
    [Session, Literal["memory", "observation"], Sequence[int]], Mapping[int, Freshness]
]
"""How memories or observations stand to the code they name, by number; see
``codegraph.anchors``.
"""


def no_code(
    session: Session, owner: Literal["memory", "observation"], numbers: Sequence[int]
) -> Mapping[int, Freshness]:
    """For those who know nothing of code."""
    return {}


def judged(
    judge: CodeJudge,
    session: Session,
    owner: Literal["memory", "observation"],
    numbers: Sequence[int],
) -> Mapping[int, Freshness]:
    """The verdicts; what goes wrong in reading code takes no answer away."""
    try:
        return judge(session, owner, numbers)
    except DeadlineError:
        raise
    except (SmaraError, OSError) as error:
        log.warning("search.code_not_judged", error=str(error))
        return {}


def metadata_of(found: Freshness | None) -> dict[str, Any]:
    """The verdict as a hit tells it; nothing of what names no code."""
    if found is None:
        return {}
    told: dict[str, Any] = {"freshness": found.verdict}
    if found.hedge is not None and found.telling != "tell":
        told["hedge"] = found.hedge
    if found.changed is not None:
        told["changed"] = found.changed
    return told


def files_now(files: Sequence[str], found: Freshness | None) -> tuple[str, ...]:
    """Files by the names they have today: what has moved is shown where it is."""
    moved = {
        each.path: each.now_path
        for each in (found.anchors if found is not None else ())
        if each.now_path is not None and each.now_path != each.path
    }
    stayed = {
        each.path
        for each in (found.anchors if found is not None else ())
        if each.now_path == each.path
    }
    return tuple(dict.fromkeys(path if path in stayed else moved.get(path, path) for path in files))
