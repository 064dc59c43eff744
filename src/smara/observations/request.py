"""Build model requests for observing and reflecting, and send them.

Instructions stay the same from call to call. Messages are fenced by a random mark, so
that no message can pass for an instruction. A call is repeated a bounded number of
times, within one deadline, until the reply is usable.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from secrets import token_hex
from typing import Any, NamedTuple

from smara.core import log
from smara.core.clock import Clock, SystemClock
from smara.core.deadline import Abort
from smara.core.escape import neutralize
from smara.core.prompts import Prompt, load_prompt
from smara.core.startup.record import dataclass, field
from smara.core.tokens import estimate_o200k
from smara.errors import BadReplyError, ModelRefusedError
from smara.messages.models import Message, Part, plain
from smara.models.chat import ChatModel, ChatReply, ChatRequest
from smara.observations.models import (
    Flavor,
    ObservationDraft,
    ObserveRequest,
    ReflectRequest,
)
from smara.observations.render import local, render
from smara.observations.reply.parse import describe_fields

_CUT = "\n[… {left:,} characters are left out here …]\n"
_DRAWS = 20
_HIGH = "🔴"


@dataclass(frozen=True, slots=True)
class TranscriptLimits:
    """The limits of what is shown, in characters.

    The middle is cut out.
    """

    text: int = 60_000
    result: int = 4_000
    argument: int = 1_500
    reasoning: int = 300
    known_tokens: int = 2_000


def draw_mark(texts: Iterable[str], draw: Callable[[], str] | None = None) -> str:
    """Draw a random mark that occurs in none of the texts."""
    folded = [text.casefold() for text in texts]
    for _ in range(_DRAWS):
        mark = draw() if draw is not None else token_hex(4)
        if mark and not any(mark.casefold() in text for text in folded):
            return mark
    return token_hex(16)  # it has more bits than there are texts


class TranscriptPart(NamedTuple):
    """A part of a message: its header and its words."""

    header: str
    text: str


def render_messages(
    messages: Sequence[Message], timezone: str, limits: TranscriptLimits
) -> list[TranscriptPart]:
    """Render the parts of messages, each under a header.

    Without one the output of a tool could go on in the user's voice.
    """
    names = {
        part.call_id: part.name
        for message in messages
        for part in message.parts
        if part.call_id and part.name
    }
    pieces: list[TranscriptPart] = []
    for message in messages:
        shown = [
            _part(part, names, limits)
            for part in message.parts
            if part.text.strip() or part.type in ("tool_call", "tool_result", "image", "file")
        ]
        time = f"{local(message.created_at, timezone):%a %Y-%m-%d %H:%M}"
        who = f"#{message.seq} {message.role} {time}"
        for piece in shown or [TranscriptPart("", "(empty)")]:
            header = f"{who} {piece.header}".rstrip() if who else piece.header or "says"
            pieces.append(TranscriptPart(header, neutralize(piece.text)))
            who = ""
    return pieces


def _part(part: Part, names: Mapping[str, str], limits: TranscriptLimits) -> TranscriptPart:
    if part.type == "text":
        return TranscriptPart("", cut(part.text, limits.text))
    if part.type == "reasoning":
        return TranscriptPart("thinks", cut(part.text, limits.reasoning))
    if part.type == "tool_call":
        arguments = part.arguments
        if isinstance(arguments, Mapping):
            shown = "; ".join(
                f"{name}={cut(plain(value), limits.argument)}" for name, value in arguments.items()
            )
        else:
            shown = "" if arguments is None else cut(plain(arguments), limits.argument)
        lines = filter(None, [shown, cut(part.text, limits.argument)])
        return TranscriptPart(f"calls {_short(part.name)}", "\n".join(lines))
    if part.type == "tool_result":
        failed = ", failed" if part.is_error else ""
        name = _short(part.name or names.get(part.call_id or ""))
        return TranscriptPart(
            f"result of {name}{failed}", cut(part.text, limits.result) or "(empty)"
        )
    size = f"{part.size_bytes:,} bytes" if part.size_bytes is not None else ""
    label = ", ".join(filter(None, (part.name or part.uri, part.media_type, size))) or "unnamed"
    words = f" {cut(part.text, 2_000)}" if part.text else ""
    return TranscriptPart(part.type, f"({cut(label, 400)}){words}")


def _short(name: str | None) -> str:
    """A tool's name as it may stand in a header: it comes from outside too."""
    return re.sub(r"[^\w.:/@-]", "_", (name or "tool")[:80])


def cut(text: str, characters: int) -> str:
    """Cut the middle out of a long text.

    >>> cut("a" * 50 + "b" * 50, 40).split()[0], len(cut("short", 40))
    ('aaaaaaaaaaaaaaaaaaaaaaaa', 5)
    """
    if len(text) <= characters:
        return text
    head = characters * 3 // 5
    tail = characters - head
    return f"{text[:head]}{_CUT.format(left=len(text) - characters)}{text[-tail:]}"


def newest_known(rendered: str, tokens: int) -> str:
    """Return as much of the known observations as fits, the newest first.

    Three quarters of the room go to the newest lines, the rest to the newest high ones
    among the older; each keeps the date it stands under.
    """
    lines = [
        line
        for line in rendered.splitlines()
        if line.strip() and not line.strip().startswith(("<thread", "</thread"))
    ]
    if estimate_o200k("\n".join(lines)) <= tokens:
        return "\n".join(lines)
    chosen: set[int] = set()
    room = tokens * 0.75
    costs = [estimate_o200k(line) + 1 for line in lines]
    newest = list(reversed(range(len(lines))))
    for at in newest:
        if costs[at] > room:
            break
        chosen.add(at)
        room -= costs[at]
    room += tokens * 0.25
    for at in newest:
        if at not in chosen and _HIGH in lines[at] and costs[at] <= room:
            chosen.add(at)
            room -= costs[at]
    shown: list[str] = []
    heading = ""
    for at, line in enumerate(lines):
        if line.startswith("Date:"):
            heading = line
        if at in chosen:
            shown += [heading] if heading and heading != line else []
            shown.append(line)
            heading = ""
    return "\n".join([f"[{len(lines) - len(shown)} older lines are left out]", *shown])


PROMPTS = Path(__file__).parent / "prompts"
MOST_LEVEL = 4
_ROLES: dict[Flavor, str] = {"coding": "an agent that writes code", "general": "an assistant"}


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """A request to a model.

    A reply that repeats its ``own_words`` is an echo.
    """

    system: str
    prompt: str
    own_words: str
    material_tokens: int


def prompt_named(name: str) -> Prompt:
    """Load one of this room's prompts."""
    return load_prompt(PROMPTS, name)


def version_of(name: str) -> str:
    """Return a prompt's name with its version: ``observer@1``."""
    return f"{name}@{prompt_named(name).version}"


def observer_request(
    request: ObserveRequest,
    limits: TranscriptLimits,
    draw: Callable[[], str] | None = None,
    reminder: str = "",
) -> ModelRequest:
    """Write the request to observe messages."""
    extras = []
    if fields := describe_fields(request.mode):
        extras.append(prompt_named("extra_fields").render({"fields": fields}))
    if request.wants_title:
        extras.append(prompt_named("extra_title").text)
    if request.wants_suggested_response:
        extras.append(prompt_named("extra_response").text)
    own = _system(
        "observer",
        request.flavor,
        "HH:MM #N",
        mode=prompt_named(f"mode_{request.mode}").text,
        example=prompt_named(f"example_{request.flavor}").text,
        extras="\n".join(extras),
    )
    pieces = render_messages(request.messages, request.timezone, limits)
    newest = neutralize(newest_known(request.known, limits.known_tokens))
    mark = draw_mark(
        [newest, own, request.instructions, *(text for piece in pieces for text in piece)], draw
    )
    history = "\n".join(f"[{mark} {piece.header}]\n{piece.text}" for piece in pieces)
    fenced = (
        prompt_named("known").render({"mark": mark, "known": newest}) + "\n\n" if newest else ""
    )
    extractors = "".join(
        "\n"
        + prompt_named("extra_extractor").render(
            {
                "name": extractor.name,
                "instruction": extractor.instruction.strip(),
                "schema": json.dumps(extractor.schema, ensure_ascii=False, separators=(",", ":")),
            }
        )
        for extractor in request.extractors
    )
    return ModelRequest(
        own + extractors + _wishes(request.instructions),
        prompt_named("observe").render(
            {"mark": mark, "known": fenced, "history": history, "reminder": reminder}
        ),
        own,
        material_tokens=round(estimate_o200k(history)),
    )


def reflector_request(
    request: ReflectRequest,
    level: int,
    target_tokens: int,
    draw: Callable[[], str] | None = None,
    reminder: str = "",
) -> ModelRequest:
    """Write the request to condense observations at a level of compression."""
    own = _system("reflector", request.flavor, "HH:MM")
    lines = neutralize(render(request.notes, request.timezone))
    tokens = round(estimate_o200k(lines))
    mark = draw_mark([lines, own, request.instructions, request.current_task], draw)
    guidance = f" {prompt_named(f'level_{level}').text}" if level else ""
    about = ""
    if request.conversation:
        title = neutralize(" ".join(request.conversation.split()))
        about = "\n" + prompt_named("reflect_thread").render({"title": title}) + "\n"
    if request.current_task:
        task = neutralize(request.current_task)
        about += "\n" + prompt_named("reflect_task").render({"mark": mark, "task": task}) + "\n"
    prompt = prompt_named("reflect").render(
        {
            "mark": mark,
            "lines": lines,
            "tokens": f"{tokens:,}",
            "target": f"{target_tokens:,}",
            "level": guidance,
            "about": about,
            "reminder": reminder,
        }
    )
    return ModelRequest(own + _wishes(request.instructions), prompt, own, material_tokens=tokens)


@lru_cache(maxsize=64)
def _system(name: str, flavor: Flavor, time: str, **parts: str) -> str:
    """Write the instructions of the observer or the reflector; they are its own words."""
    values = {
        "role": _ROLES[flavor],
        "data": prompt_named("data").text,
        "lines": prompt_named("lines").text,
        "flavor": prompt_named(flavor).text,
        "format": prompt_named("format").render({"time": time}),
    }
    return prompt_named(name).render({**values, **parts}).strip()


def _wishes(instructions: str) -> str:
    text = neutralize(instructions).strip()
    return (
        "\n\n" + prompt_named("extra_instructions").render({"instructions": text}) if text else ""
    )


_LEAST_OUTPUT, _MOST_OUTPUT = 4_000, 16_000
_LEAST_SECONDS = 1.0
_HINTS = {"truncated": "it was cut off before its end.", "empty": "it was empty."}
"""What is said of replies that lacked room, by the reason for which they were refused."""


@dataclass(frozen=True, slots=True)
class ReplyAttempts:
    """The attempts to get a usable reply.

    The deadline is for all together.

    Without ``deadline_seconds`` the model's own deadline holds.
    """

    model: ChatModel
    attempts: int = 2
    deadline_seconds: float | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    """Settings of every request; ``temperature`` is among them."""
    output_tokens: int | None = None
    """How long a reply may be; by default in proportion to what it stands for."""
    clock: Clock = field(default_factory=SystemClock)

    def ends_at(self) -> float | None:
        """Return when all attempts that begin now must have ended."""
        return (
            None
            if self.deadline_seconds is None
            else self.clock.monotonic() + self.deadline_seconds
        )

    def ask(
        self,
        speak: Callable[[str], ModelRequest],
        read: Callable[[ChatReply, ModelRequest], ObservationDraft],
        ends_at: float | None,
        abort: Abort | None = None,
    ) -> ObservationDraft:
        """Return the first draft that can be used.

        ``speak`` makes the request, given what was wrong with the last reply; ``read`` turns a
        reply into a draft or raises ``BadReplyError``. Raises the last one when no attempt
        succeeded, and every other error of the model as it comes: repeating those is not ours.
        """
        reminder, room = "", 1
        failure: BadReplyError | None = None
        for attempt in range(max(1, self.attempts) + 1):
            # One attempt more for a reply that lacked nothing but room.
            is_last = attempt >= self.attempts and room == 1
            if failure is not None and (is_last or self.is_over(ends_at)):
                break
            spoken = speak(reminder)
            # Half of its source: a history of 30,000 tokens gets 15,000 (its observations have
            # 1,000 to 6,000); a model that thinks before it writes needs room even for a short
            # one. A reply that was cut off or empty gets twice as much each time.
            usual = min(_MOST_OUTPUT, max(_LEAST_OUTPUT, spoken.material_tokens // 2))
            request = ChatRequest(
                spoken.prompt,
                spoken.system,
                None if ends_at is None else max(0.01, ends_at - self.clock.monotonic()),
                max_output_tokens=self.output_tokens or usual * room,
                temperature=self.options.get("temperature"),
                settings={
                    name: each for name, each in self.options.items() if name != "temperature"
                },
            )
            try:
                return read(self.model.complete(request, abort), spoken)
            except BadReplyError as error:
                failure, reason = error, str(error.facts.get("reason"))
                hint = str(error.facts.get("hint") or _HINTS.get(reason, "it could not be read."))
                room = room * 2 if reason in _HINTS else 1
                reminder = "\n\n" + prompt_named("retry").render({"reason": hint})
                log.warning(
                    "reply.refused",
                    model=self.model.name,
                    reason=error.facts.get("reason"),
                    attempt=attempt + 1,
                )
        if failure is None:
            raise AssertionError("there is at least one attempt")
        if failure.facts.get("reason") != "refused":
            raise failure
        raise ModelRefusedError(
            f"{self.model.name} refuses to take notes of these messages. Configure another model, "
            "or observe without one.",
            reason="refusal",
        )

    def is_over(self, ends_at: float | None) -> bool:
        """Return True if there is no time left for another attempt."""
        return ends_at is not None and ends_at - self.clock.monotonic() < _LEAST_SECONDS
