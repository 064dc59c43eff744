"""A reader of what Smara states, which shares no code with what writes it.

`World` is what really happened: the payloads that hosts sent, in their order. A `Shape` is a form
of statement with the question that the world must answer. `false_statements` takes a text apart
into statements; one that no shape fits is as wrong as one that the world contradicts.

To read further texts, add shapes: a pattern that fits the whole statement, and a check that
returns True if the world bears it out. Group names are the arguments of the check.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

EDITS = ("Edit", "Write", "MultiEdit", "NotebookEdit")
_PROSE = re.compile(r"\.(?:md|mdx|rst|txt|adoc)$|(?:^|/)(?:LICENSE|README|CHANGELOG)[^/]*$")
_SHELL_EDIT = re.compile(r"\bsed\s+(?:-\w+\s+)*-i|\btee\b|(?<![<>=-])>{1,2}\s*[\w./~\"'$]")
_MOVES_FILES = re.compile(
    r"\bgit\s+(?:pull|merge|rebase|stash|cherry-pick|am|apply|reset|revert|restore|checkout)\b"
)
_COMMITTED = re.compile(r"^\[\S.*? ([0-9a-f]{7,40})\] (.+)$", re.M)
_COUNT = re.compile(r"(\d+) (passed|failed|failures?|tests?|passing|failing|errors?|skipped|total)")


@dataclass(frozen=True, slots=True)
class Happening:
    """One payload: a prompt, or a tool call that has ended."""

    at_ms: int
    event: str
    payload: dict[str, Any]

    @property
    def tool(self) -> str:
        return str(self.payload.get("tool_name", ""))

    @property
    def given(self) -> dict[str, Any]:
        given = self.payload.get("tool_input")
        return given if isinstance(given, dict) else {}

    @property
    def command(self) -> str:
        return str(self.given.get("command", "")) if self.tool == "Bash" else ""

    @property
    def path(self) -> str:
        return str(self.given.get("file_path") or self.given.get("notebook_path") or "")

    @property
    def output(self) -> str:
        answer = self.payload.get("tool_response")
        if isinstance(answer, dict):
            answer = "\n".join(str(answer.get(name) or "") for name in ("stdout", "stderr"))
        elif isinstance(answer, list):
            answer = "\n".join(str(each.get("text", "")) for each in answer)
        return f"{self.payload.get('error') or ''}\n{answer or ''}"

    @property
    def has_failed(self) -> bool:
        return self.event == "PostToolUseFailure"

    @property
    def is_edit(self) -> bool:
        line = self.command.partition("git commit")[0]  # a message may hold anything
        return not self.has_failed and (self.tool in EDITS or bool(_SHELL_EDIT.search(line)))

    def edits(self, path: str) -> bool:
        # `cd web && sed -i … client.ts` edits web/client.ts.
        moved = re.sub(r"\bcd (\S+) && (.*?)([\w.-]+)$", r"\2\1/\3", self.command)
        return self.is_edit and (self.path.endswith(path) or path in self.command + moved)

    def runs(self, command: str) -> bool:
        """Whether a command, which may be shortened or joined of several, stands in this one."""
        line = " ".join(self.command.split())
        return bool(line) and all(part.rstrip("…") in line for part in command.split(" && "))


@dataclass(slots=True)
class World:
    """Everything that hosts sent, by session, and what was said in answer."""

    sessions: dict[str, list[Happening]] = field(default_factory=dict)
    to_review: int = 0
    memories: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The rows of memories by their short ids."""
    tasks: dict[str, tuple[str, bool]] = field(default_factory=dict)
    """The titles of open tasks by their short ids, and whether one waits for another."""

    def add(self, at_ms: int, event: str, payload: dict[str, Any]) -> None:
        kept = self.sessions.setdefault(payload["session_id"], [])
        kept.append(Happening(at_ms, event, payload))

    def all(self) -> Iterator[Happening]:
        return (each for kept in self.sessions.values() for each in kept)

    def prompts(self, session: str) -> list[str]:
        kept = self.sessions.get(session, [])
        prompts = [one_line(each.payload["prompt"]) for each in kept if each.payload.get("prompt")]
        return [each for each in prompts if not each.startswith("[Request interrupted")]

    def days(self, happenings: Iterable[Happening]) -> set[str]:
        return {
            datetime.fromtimestamp(each.at_ms / 1000, UTC).strftime("%Y-%m-%d")
            for each in happenings
        }


def one_line(text: str) -> str:
    return " ".join(str(text).split()).replace('"', "'")


def is_beginning(shown: str, whole: str) -> bool:
    """Whether a quotation is a text, or the beginning of one with an ellipsis."""
    return whole.startswith(shown[:-1].rstrip()) if shown.endswith("…") else shown == whole


# what a session did


def edited(world: World, session: str, paths: str, more: str | None = None) -> bool:
    kept = world.sessions[session]
    named = re.findall(r"`([^`]+)`", paths)
    everything = {each.path for each in kept if each.is_edit and each.path}
    is_enough = (
        more is None
        or len(everything) >= len(named)
        or any(each.is_edit and each.command for each in kept)
    )
    return is_enough and all(
        any(each.edits(path) and not _is_undone(kept, at, path) for at, each in enumerate(kept))
        for path in named
    )


def _is_undone(kept: Sequence[Happening], at: int, path: str) -> bool:
    """Whether a later command or edit took this edit back."""
    one = kept[at]
    for each in kept[at + 1 :]:
        if each.has_failed:
            continue
        if re.search(r"\bgit\s+(?:checkout|restore|reset\s+--hard)", each.command) and (
            any(path.endswith(word) for word in each.command.split())
            or re.search(r"\s\.(?:\s|$)|--hard", each.command)
        ):
            return True
        back = (each.given.get("old_string"), each.given.get("new_string"))
        forth = (one.given.get("new_string"), one.given.get("old_string"))
        if each.edits(path) and back == forth and back[0]:
            return True
    return False


def edited_nothing(world: World, session: str) -> bool:
    """Whether nothing happened that could have edited a file: no edit, no command but looks."""
    looks = r"^\s*(?:cd \S+ && )?(?:ls|cat|head|tail|rg|grep|find|pwd|wc|git (?:status|log|diff))\b"
    return not any(
        each.is_edit or (each.command and not re.match(looks, each.command))
        for each in world.sessions[session]
    )


def took_back(world: World, session: str) -> bool:
    kept = world.sessions[session]
    edits = [(at, each.path) for at, each in enumerate(kept) if each.is_edit and each.path]
    undone = {at for at, path in edits if _is_undone(kept, at, path)}
    # The edit that takes another one back is none that stands.
    return bool(undone) and len(edits) <= 2 * len(undone)


def committed(world: World, session: str, commits: str) -> bool:
    made = dict(
        found
        for each in world.sessions[session]
        if not each.has_failed
        for found in _COMMITTED.findall(each.output)
    )
    lost = any(
        re.search(r"git\s+(?:revert|rebase)|git\s+reset\b.*(?:--hard|[~^])", each.command)
        for each in world.sessions[session]
    )
    stated = re.findall(r'([0-9a-f]{7,40})(?: "([^"]*)")?', commits)
    subjects = {sha: one_line(subject) for sha, subject in made.items()}
    commands = one_line("\n".join(each.command for each in world.sessions[session]))
    return (
        bool(stated)
        and not lost
        and all(
            any(each.startswith(sha) for each in made)
            and (
                not said
                or is_beginning(said, subjects.get(sha, ""))
                or said.rstrip("…") in commands
            )
            for sha, said in stated
        )
    )


def edited_later(world: World, session: str, paths: str) -> bool:
    kept = world.sessions[session]
    last = max(at for at, each in enumerate(kept) if "git commit" in each.command)
    named = re.findall(r"`([^`]+)`", paths)
    return all(any(each.edits(path) for each in kept[last + 1 :]) for path in named)


def tested(world: World, session: str, when: str, command: str, result: str) -> bool:
    kept = world.sessions[session]
    runs = [at for at, each in enumerate(kept) if each.runs(command)]
    if not runs:
        return False
    run = kept[runs[-1]]
    if result in ("failed", "no failure shown"):
        is_so = run.has_failed or "fail" in run.output.lower()
        is_right = is_so if result == "failed" else not is_so
    else:
        counts = set(_COUNT.findall(run.output))
        is_right = set(_COUNT.findall(result)) <= counts and bool(counts)
    changes = [
        at
        for at, each in enumerate(kept)
        if (each.is_edit and not _PROSE.search(each.path))
        or (not each.has_failed and _MOVES_FILES.search(each.command))
    ]
    if when == "it ran last":
        return is_right and not any(kept[at].path for at in changes)
    is_after = not changes or runs[-1] > changes[-1]
    return is_right and is_after == (when == "after its last edit of code")


_BLOCKS = re.compile(r"^(?:\s*<(\w+)>.*?</\1>)+\s*", re.S)
"""What a program puts before a person's words."""


def asked_last(world: World, session: str, words: str) -> bool:
    prompts = world.prompts(session)
    return bool(prompts) and is_beginning(words, _BLOCKS.sub("", prompts[-1]))


def answered_last(world: World, session: str, own: str, copied: str) -> bool:
    last = (world.prompts(session) or [""])[-1]
    return one_line(copied) in one_line(last) and one_line(last).endswith(one_line(own))


def asked(world: World, session: str, words: str) -> bool:
    return any(is_beginning(words, each) for each in world.prompts(session))


# what failed before


def failed_before(
    world: World, command: str, times: str, error: str, day: str, fix: str | None = None
) -> bool:
    # Without a command, of any: it is said after the error itself.
    runs = [each for each in world.all() if each.command and (each.runs(command) or not command)]
    words = [word.strip("`'\"….") for word in error.split()][:6]
    failed = [each for each in runs if all(word in each.output for word in words)]
    number = int(times.split()[0]) if times[0].isdigit() else 1
    is_fixed = fix is None or any(
        each.runs(fix) and not each.has_failed and each.at_ms > failed[0].at_ms
        for each in world.all()
        if failed
    )
    return len(failed) >= number and day in world.days(failed) and is_fixed


def worked_after(world: World, command: str, fix: str, error: str = "") -> bool:
    words = [word.strip("`'\"….") for word in error.split()][:6]
    for kept in world.sessions.values():
        failed = [
            at
            for at, each in enumerate(kept)
            if each.runs(command) and all(word in each.output for word in words)
        ]
        if failed and any(each.runs(fix) and not each.has_failed for each in kept[failed[0] + 1 :]):
            return True
    return False


def not_found(
    world: World, path: str, times: str, day: str, sessions: str = "1", place: str = ""
) -> bool:
    """Whether a file was looked for so often, and another of its name was then read."""
    looked = [
        (session, at)
        for session, kept in world.sessions.items()
        for at, each in enumerate(kept)
        if each.tool == "Read" and each.has_failed and each.path.endswith(f"/{path}")
    ]
    failed = [world.sessions[session][at] for session, at in looked]
    is_read = not place or any(
        each.path.endswith(f"/{place}") and not each.has_failed
        for session, at in looked
        for each in world.sessions[session][at:]
    )
    number = int(times.split()[0]) if times[0].isdigit() else 1
    return (
        len(failed) == number
        and len({session for session, _ in looked}) == int(sessions)
        and max(world.days(failed), default="") == day
        and is_read
    )


# what is known

NAMES = {
    "trap": "gotcha", "about a module": "module_insight", "decision": "decision",
    "error": "error_pattern", "preference": "preference", "requirement": "requirement",
    "given up": "dead_end", "seen in the running program": "e2e_observation",
    "Traps": "gotcha", "About modules": "module_insight", "Decided": "decision",
    "Preferred here": "preference", "Required": "requirement",
}  # fmt: skip


def known(
    world: World,
    id: str,
    content: str,
    name: str | None = None,
    day: str | None = None,
    files: str | None = None,
    noted: str | None = None,
    quote: str | None = None,
) -> bool:
    """Whether a memory says this, and is what it is said to be."""
    row = world.memories.get(id)
    if row is None:
        return False
    made = datetime.fromtimestamp((row["seen_at"] or row["created_at"]) / 1000, UTC)
    return (
        one_line(row["content"]) == one_line(content)
        and bool(row["is_verified"]) == (noted is None)
        and row["deprecated_at"] is None
        and row["stale_at"] is None
        and f"{made:%Y-%m-%d}" == (day or noted)
        and (name is None or NAMES.get(name) == row["type"])
        and set(re.findall(r"[^ ,]+", files or "")) <= set(json.loads(row["files"]))
        and (quote is None or one_line(quote).strip("'…") in one_line(_quotes(row)))
        and was_output(world, quote or "")
    )


def was_output(world: World, quote: str) -> bool:
    """Whether what a quotation says that an output said stands in one of a call that failed."""
    said = quote.partition("output said: ")[2].rstrip("…").split()
    outputs = (one_line(each.output) for each in world.all() if each.has_failed)
    return not said or any(all(word in output for word in said) for output in outputs)


def _quotes(row: dict[str, Any]) -> str:
    return " ".join(str(each.get("quote")) for each in json.loads(row["evidence"]))


@dataclass(frozen=True, slots=True)
class Shape:
    """A form of statement, and the question that the world must answer."""

    pattern: re.Pattern[str]
    check: Callable[..., bool]


def shape(pattern: str, check: Callable[..., bool]) -> Shape:
    return Shape(re.compile(pattern, re.S), check)


def _always(world: World, **_: str) -> bool:
    return True


SESSION_SHAPES = (
    shape(r"It edited no file\.", edited_nothing),
    shape(r"Its edits were taken back\.", took_back),
    shape(r"It edited (?P<paths>`[^`]+`(?:, `[^`]+`)*)(?: and (?P<more>\d+) more)?\.", edited),
    shape(
        r'It committed (?P<commits>[0-9a-f]{7,40}(?: "[^"]*")?(?:, [0-9a-f]{7,40}(?: "[^"]*")?)*)'
        r"(?: and \d+ earlier)?\.",
        committed,
    ),
    shape(
        r"Edited after its last commit: (?P<paths>`[^`]+`(?:, `[^`]+`)*)(?: and \d+ more)?\.",
        edited_later,
    ),
    shape(
        r"Tests (?P<when>(?:after|before) its last edit of code|it ran last): `(?P<command>[^`]+)`,"
        r" (?P<result>failed|no failure shown|\d+ \w+(?:, \d+ \w+)*)\.",
        tested,
    ),
    shape(r"the person's last request was \"(?P<words>[^\"]*)\"\.", asked_last),
    shape(
        r"the person's last request was \"(?P<own>[^\"]*)\", to the agent's"
        r" \"(?P<copied>[^\"]*)\"\.",
        answered_last,
    ),
    shape(r"the person asked \"(?P<words>[^\"]*)\"\.", asked),
    shape(
        r"the person asked \"(?P<first>[^\"]*)\" and (?:last|then) said \"(?P<words>[^\"]*)\"\.",
        lambda world, session, first, words: (
            asked(world, session, first) and asked_last(world, session, words)
        ),
    ),
)
"""What is said of one session, whose id is the argument `session`."""

_DATE = r"\d{4}-\d\d-\d\d"
_LAST = re.compile(
    rf"(?:The last|An earlier) session \((?P<host>[^,)]+), (?P<day>{_DATE})(?:, branch [^)]+)?\): "
    r"(?P<said>.*) \[Thread (?P<session>[^\]]+)\]",
    re.S,
)
LINE_SHAPES = (
    shape(r"</?smara-memory>|What earlier sessions of this project left behind: .*", _always),
    shape(r"Noted in earlier sessions, not confirmed by a person:", _always),
    shape(
        r"A person confirmed more than stands here: .*",
        lambda world: sum(bool(row["is_verified"]) for row in world.memories.values()) > 1,
    ),
    shape(
        r"(?P<number>\d+) noted memor(?:y waits|ies wait) for a person's review .*",
        lambda world, number: int(number) == world.to_review,
    ),
    shape(
        r"Tasks that can be begun: (?P<tasks>t-\w+ \"[^\"]+\"(?:, t-\w+ \"[^\"]+\")*)"
        r"(?:; (?P<blocked>\d+) blocked)?\.",
        lambda world, tasks, blocked="0": (
            {each: (title, False) for each, title in re.findall(r'(t-\w+) "([^"]+)"', tasks)}
            == {each: task for each, task in world.tasks.items() if not task[1]}
            and int(blocked) == sum(task[1] for task in world.tasks.values())
        ),
    ),
    shape(
        rf"- The file `(?P<path>[^`]+)` was not found \((?P<times>once|\d+ times)"
        rf"(?: in (?P<sessions>\d+) sessions)?, (?:last )?on (?P<day>{_DATE})\)\."
        r"(?: It is at `(?P<place>[^`]+)`\.)? Not confirmed by a person\. \[Failure \w+\]",
        not_found,
    ),
    shape(
        rf"- (?P<name>[a-z ]+) \(noted (?P<noted>{_DATE})(?:, \d+ sessions)?(?:, not confirmed)?\)"
        r": \"(?P<content>There is no .+?)\" Seen: \"(?P<quote>.+)\" "
        r"\[Memory #(?P<id>m-\w+)(?:, (?P<files>[^\]]+))?\]",
        known,
    ),
    shape(
        r"- (?:(?P<name>trap|about a module|decision|preference|requirement|error|given up"
        r"|seen in the running program): )?(?P<content>[^\[]+)"
        rf" \[Memory #(?P<id>m-\w+), (?P<day>{_DATE})(?:, (?P<files>[^\]]+))?\]",
        known,
    ),
    shape(
        rf"- error \(noted {_DATE}(?:, \d+ sessions)?(?:, not confirmed)?\): \"Running "
        r"`(?P<command>[^`]+)` failed(?: \(output said: `(?P<error>[^`]+)`\))?; what worked: "
        r"(?:running )?`(?P<fix>[^`]+)`(?: first)?\.\""
        r"(?: Seen: \"(?P<quote>[^\"]+)\")? \[Memory [^]]+\]",
        lambda world, command, fix, error="", quote="": (
            worked_after(world, command, fix, error) and was_output(world, quote)
        ),
    ),
    shape(
        rf"- (?:`(?P<command>[^`]+)` failed|This error came) here before "
        r"\((?P<times>once|\d+ times)(?: in \d+ "
        rf"sessions)?, (?:last )?on (?P<day>{_DATE})(?:; output said: `(?P<error>[^`]+)`)?\)\. "
        r"(?:What worked instead: `(?P<fix>[^`]+)`\.|It worked after `(?P<first>[^`]+)` had been "
        r"run\.|It worked after a change of .*|Nothing is known that worked\.)"
        r" Not confirmed by a person\. \[Failure \w+\]",
        lambda world, times, day, command="", error="", fix=None, first=None: failed_before(
            world, command, times, error, day, fix or first
        ),
    ),
)
"""What stands on a line of its own."""


def false_statements(world: World, text: str, shapes: Sequence[Shape] = LINE_SHAPES) -> list[str]:
    """Return the statements of a text that no shape fits or that the world contradicts."""
    found: list[str] = []
    heading = ""
    for line in filter(None, map(str.strip, text.splitlines())):
        if line.endswith(":") and line[:-1] in NAMES:
            heading = line[:-1]
            continue
        last = _LAST.fullmatch(line)
        if last is None:
            found += _judged(world, line, shapes)
            # What stands below a heading is of its type.
            cited = re.search(r"\[Memory #(m-\w+)", line)
            heading = heading if cited and line.startswith("- ") else ""
            if heading and cited and world.memories[cited[1]]["type"] != NAMES[heading]:
                found.append(f"{heading}: {line}")
            continue
        days = world.days(world.sessions.get(last["session"], []))
        if last["day"] not in days:
            found.append(f"the day of {line}")
        found += false_of_session(world, last["session"], last["said"])
    return found


def false_of_session(world: World, session: str, said: str) -> list[str]:
    """Return what is false of a session's statements, which stand one after the other."""
    rest, found = said.strip(), []
    while rest:
        fitting = [
            (match, each)
            for each in SESSION_SHAPES
            if (match := each.pattern.match(rest)) is not None
        ]
        if not fitting:
            return [*found, rest]
        match, each = fitting[0]
        given = {name: value for name, value in match.groupdict().items() if value is not None}
        if not each.check(world, session=session, **given):
            found.append(match[0])
        rest = rest[match.end() :].strip()
    return found


def _judged(world: World, statement: str, shapes: Sequence[Shape]) -> list[str]:
    for each in shapes:
        match = each.pattern.fullmatch(statement)
        if match is not None:
            given = {name: value for name, value in match.groupdict().items() if value is not None}
            return [] if each.check(world, **given) else [statement]
    return [statement]
