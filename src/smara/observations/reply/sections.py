"""Split a model's reply into its sections.

Tags, headings, code fences and thinking around them are accepted in many forms.
"""

from __future__ import annotations

from collections.abc import Iterable

from smara.core.extract import read_cues
from smara.core.startup.record import dataclass, field
from smara.core.startup.regex import re, regex

CUES, WORDS = read_cues(__file__, "cues.txt")
"""By what the parts of a reply are recognized: patterns, and sets of words."""

OBSERVATIONS = "observations"
CURRENT_TASK = "current-task"
SUGGESTED_RESPONSE = "suggested-response"
THREAD_TITLE = "thread-title"
FIELDS = "observed-fields"

_NAMES = {
    "observations": OBSERVATIONS, "observation": OBSERVATIONS, "observationlog": OBSERVATIONS,
    "reflections": OBSERVATIONS, "reflection": OBSERVATIONS,
    "currenttask": CURRENT_TASK, "currenttasks": CURRENT_TASK,
    "suggestedresponse": SUGGESTED_RESPONSE, "suggestedcontinuation": SUGGESTED_RESPONSE,
    "threadtitle": THREAD_TITLE,
    "observedfields": FIELDS, "modespecific": FIELDS,
}  # fmt: skip

_LINE_ENDS = regex("\r\n|[\r\v\f\x85\u2028\u2029]")
_MOST_ON_A_LINE = 8
_ENTITIES = {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "apos": "'", "nbsp": " "}


@dataclass(slots=True)
class Sections:
    """The lines of each section, those outside, and the unclosed section."""

    lines: dict[str, list[str]] = field(default_factory=dict)
    outside: list[str] = field(default_factory=list)
    unclosed: str | None = None

    def text(self, name: str) -> str | None:
        """Return a section as one text; None if the reply lacks it."""
        return "\n".join(self.lines[name]).strip() if name in self.lines else None


def split_reply(text: str, extractors: Iterable[str] = ()) -> Sections:
    """Split a reply into sections; join several of one name."""
    names = {**_NAMES, **{_key(f"observed-{name}"): f"observed-{name}" for name in extractors}}
    text = without_thinking(_LINE_ENDS.sub("\n", text))
    if CUES["escaped tag"].search(text):
        text = unescaped(text)
    splitter = _Splitter(names)
    for line in CUES["thread tag"].sub("", text).split("\n"):
        if not CUES["code fence"].fullmatch(line):
            splitter.read(line)
    splitter.found.unclosed = splitter.current
    return splitter.found


class _Splitter:
    """Reads a reply line by line, and knows in which section it is."""

    def __init__(self, names: dict[str, str]) -> None:
        self.names = names
        self.found = Sections()
        self.current: str | None = None
        self._closed_in_passing: str | None = None

    def read(self, line: str) -> None:
        heading = CUES["section heading"].fullmatch(line)
        if heading and (name := self.names.get(_key(heading[1]))):
            self._enter(name)
            return
        is_start = True
        for _ in range(_MOST_ON_A_LINE):
            opening = CUES["opening tag"].match(line)
            name = self.names.get(_key(opening[1])) if opening else None
            if opening is None or name is None:
                break
            self._enter(name)
            line = line[opening.end() :]
            is_start = False
            if (closing := self._closing(line)) is not None:
                self._add(line[: closing.start()])
                self._enter(None)
                line = line[closing.end() :].lstrip()
        closing = self._closing(line)
        if closing is not None:
            before, section = line[: closing.start()], self.current
            self._add(before)
            self._enter(None)
            self._closed_in_passing = section if before.strip() else None
            return
        if self.current is None and self._closed_in_passing and CUES["listed"].match(line):
            # The line that seemed to end the section only spoke of its tag: the section goes on.
            self.current = self._closed_in_passing
        if line or is_start:
            self._add(line)

    def _closing(self, line: str) -> re.Match[str] | None:
        """The closing tag of the current section, at the beginning or at the end of a line."""
        if self.current is None or "</" not in line.replace(" ", ""):
            return None
        for closing in CUES["closing tag"].finditer(line):
            is_ours = self.names.get(_key(closing[1])) == self.current
            rest = line[closing.end() :].strip()
            if is_ours and (
                not line[: closing.start()].strip() or not rest or CUES["opening tag"].match(rest)
            ):
                return closing
        return None

    def _enter(self, name: str | None) -> None:
        self.current = name
        self._closed_in_passing = None
        if name is not None:
            self.found.lines.setdefault(name, [])

    def _add(self, line: str) -> None:
        section = self.found.outside if self.current is None else self.found.lines[self.current]
        section.append(line)


def without_thinking(text: str) -> str:
    """Return a reply without what the model said to itself first.

    Thinking that was never closed ends where the observations begin; a closing tag without
    an opening one ends thinking that began with the reply.
    """
    spoken: list[str] = []
    at = depth = 0
    for tag in CUES["thinking"].finditer(text):
        if tag[1]:
            if depth == 0:
                spoken.append(text[at : tag.start()])
            depth += 1
            at = tag.end()
        elif depth:
            depth -= 1
            at = tag.end()
        elif not spoken:
            at = tag.end()
    rest = text[at:]
    if depth:
        begin = re.search(r"^[ \t]*<observations?>", rest, re.IGNORECASE | re.MULTILINE)
        rest = rest[begin.start() :] if begin else ""
    return "".join(spoken) + rest


def unescaped(text: str) -> str:
    """Put the few entities that models write back.

    ``&copy=2`` in an address stays.
    """
    return CUES["entity"].sub(_character, text)


def _character(entity: re.Match[str]) -> str:
    name = entity[1]
    if name in _ENTITIES:
        return _ENTITIES[name]
    code = int(name[2:], 16) if name[1] in "xX" else int(name[1:])
    is_character = 32 <= code < 0x110000 and not 0xD800 <= code < 0xE000
    return chr(code) if is_character else entity[0]


def _key(name: str) -> str:
    return re.sub(r"[-_ ]", "", name).lower()
