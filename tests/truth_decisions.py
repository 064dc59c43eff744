"""Read what Smara states of decisions and of reasons in commits, and hold it against the sources.

A decision is held against the words that hosts sent, a reason against git itself. As in
`tests.truth`, nothing is shared with what writes the lines.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

from tests.truth import LINE_SHAPES, Shape, World, one_line, shape

_QUOTED = re.compile(r'"([^"]*)"')
_DAY = r"\d{4}-\d\d-\d\d"


def _plain(text: str) -> str:
    return one_line(text).replace("[Memory #", "(Memory #")


def words_stand_in(quotation: str, text: str) -> bool:
    """Whether the words of each sentence of a quotation stand in a text, in order.

    Between them lists, code and titles may have stood.
    """
    there = " ".join(re.findall(r"\w+", text))
    at = 0
    for piece in re.split(r"…|(?<=[.:!?)])\s", quotation):
        words = " ".join(re.findall(r"\w+", piece))
        at = there.find(words, at)
        if at < 0:
            return False
        at += len(words)
    return True


def stands_in(quotation: str, texts: Iterable[str]) -> bool:
    """Whether all pieces of a quotation, which may leave out some, stand in one text in order."""
    pieces = [each.strip() for each in quotation.split("…") if each.strip()]
    for text in map(_plain, texts):
        at = 0
        for piece in pieces:
            at = text.find(piece, at)
            if at < 0:
                break
            at += len(piece)
        else:
            return True
    return False


def answers(world: World, session: str) -> list[str]:
    """Return what the agent of a session said."""
    sent = world.sessions.get(session, [])
    return [str(each.payload.get("last_assistant_message") or "") for each in sent]


def decided(
    world: World,
    session: str,
    day: str,
    id: str,
    own: str = "",
    agents: str = "",
    earlier: str = "",
    rejected: str = "",
) -> bool:
    """Whether a person said this in that session on that day, and it still holds."""
    row = world.memories.get(id)
    sent = world.sessions.get(session, [])
    asked = [each for each in sent if each.payload.get("prompt")]
    everything = [each for name in world.sessions for each in world.prompts(name)]
    both = [*world.prompts(session), *answers(world, session)]
    return (
        row is not None
        and row["deprecated_at"] is None
        and day in world.days(asked)
        and all(stands_in(each, world.prompts(session)) for each in _QUOTED.findall(own))
        and (not agents or stands_in(agents, answers(world, session)))
        # What stands from before was said before; several of its sentences are joined.
        and all(stands_in(each, everything) for each in re.split(r"(?<=[.!?]) ", earlier) if each)
        and all(_was_rejected(world, each, both) for each in _QUOTED.findall(rejected))
    )


def _was_rejected(world: World, text: str, both: Iterable[str]) -> bool:
    """Whether words of the session were turned down, or an earlier rule held until then."""
    former = re.fullmatch(rf"until then \(since ({_DAY})\): (.*)", text)
    if former is None:
        return stands_in(text, both)
    return any(
        former[1] in world.days(sent)
        and stands_in(former[2], [*world.prompts(name), *answers(world, name)])
        for name, sent in world.sessions.items()
    )


DECISION_SHAPES = (
    shape(
        rf"- Said by a person on (?P<day>{_DAY})"
        r"(?:, in the agent's words: \"(?P<agents>[^\"]*)\"(?: The person:)?|:)"
        r"(?P<own>(?: \"[^\"]*\")*)"
        r"(?: Still standing from before: \"(?P<earlier>[^\"]*)\")?"
        r"(?P<rejected>(?: Rejected: \"[^\"]*\")*)"
        r"(?: Another person decided otherwise \(Memory #m-\w+(?:, #m-\w+)*\): ask which one"
        r" holds\.)? \[Memory #(?P<id>m-\w+), Thread (?P<session>[^\]]+)\]",
        decided,
    ),
)
ALL_SHAPES: tuple[Shape, ...] = (*DECISION_SHAPES, *LINE_SHAPES)


class History:
    """What git says of one repository."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def _git(self, *words: str) -> str:
        command = ["git", "-C", str(self._folder), *words]
        # Days are those of Greenwich everywhere.
        there = {**os.environ, "TZ": "UTC"}
        done = subprocess.run(command, capture_output=True, check=False, env=there)
        return done.stdout.decode("utf-8", "replace")

    def _is(self, sha: str, day: str, subject: str) -> bool:
        form = ("--date=format-local:%Y-%m-%d", "--format=%ad%n%cd%n%s")
        date, _, first = self._git("show", "-s", *form, sha).strip().rpartition("\n")
        shown = subject.rstrip("…").rstrip()
        whole = one_line(first)
        return day in date.split() and (whole.startswith(shown) or _without_kind(whole, shown))

    def _body(self, sha: str) -> str:
        """Return a message without the marks of its lists."""
        return re.sub(
            r"(?m)^\s*(?:[-*+•]|\d+[.)])\s+", "", self._git("show", "-s", "--format=%B", sha)
        )

    def _lines(self, sha: str, sign: str) -> list[str]:
        shown = self._git("show", "--format=", "--first-parent", "-m", "-U0", sha).splitlines()
        return [
            one_line(each[1:]).replace("`", "'")
            for each in shown
            if each.startswith(sign) and not each.startswith(sign * 3)
        ]

    def _has(self, sha: str, sign: str, code: str) -> bool:
        shown = code.rstrip("…").rstrip().replace('"', "'")
        return any(shown in each for each in self._lines(sha, sign))

    def set_for(self, sha: str, day: str, subject: str, why: str, cited: str) -> bool:
        """Whether a commit is what it is said to be, and gives this reason."""
        # Marks of lists and the stops of their entries are left out or added.
        return cited == sha and self._is(sha, day, subject) and words_stand_in(why, self._body(sha))

    def undone(
        self, sha: str, day: str, subject: str, code: str, why: str,
        later: str, later_day: str, later_subject: str, cited: str, now: str = "", more: str = "",
    ) -> bool:  # fmt: skip
        """Whether a later commit took this line away, and gives no reason."""
        body = self._body(later).strip().splitlines()[1:]
        silent = [
            each for each in body if each.strip() and not re.match(r"[\w-]+: |\(cherry", each)
        ]
        here = self._git("grep", "-hF", "--", now.rstrip("…").rstrip()) if now else "."
        return (
            self.set_for(sha, day, subject, why, cited)
            and self._is(later, later_day, later_subject)
            and self._has(sha, "+", code)
            and self._has(later, "-", code)
            and not silent
            and bool(here)
        )

    def shapes(self) -> tuple[Shape, ...]:
        """Return the shapes of what is said of commits."""
        cited = rf'(?P<sha>[0-9a-f]{{7,40}}) \((?P<day>{_DAY}), "(?P<subject>[^"]*)"\)'
        later = cited.replace("<sha", "<later").replace("<day", "<later_day")
        later = later.replace("<subject", "<later_subject")
        end = r" \[Commit (?P<cited>[0-9a-f]{7,40})\]"
        return (
            shape(
                rf"- Lines (?:that this changes|in `[^`]+`) were set by commit {cited}, whose"
                rf' message says: "(?P<why>[^"]*)"{end}',
                lambda world, **given: self.set_for(**given),
            ),
            shape(
                rf"- Undone (?:here|in `[^`]+`)(?: in `[^`]+`)?: commit {cited} had set"
                r" `(?P<code>[^`]*)`(?: and (?P<more>\d+) more lines)?, and its message says:"
                rf' "(?P<why>[^"]*)" Commit {later} took that away; its message says no more than'
                rf" that\.(?: `(?P<now>[^`]*)` stands there now\.)?{end}",
                lambda world, **given: self.undone(**given),
            ),
        )


def _without_kind(whole: str, shown: str) -> bool:
    """Whether a subject was shown without its kind, as ``fix(x): ``."""
    return re.sub(r"^\w+(?:\([^)]*\))?!?: ", "", whole).startswith(shown)
