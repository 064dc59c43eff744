"""Build model requests for observing and reflecting, and send them.

Instructions stay the same from call to call. Messages are fenced by a random mark, so
that no message can pass for an instruction. A call is repeated a bounded number of
times, within one deadline, until the reply is usable.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from secrets import token_hex
from typing import Any, NamedTuple

from smara.core import log
from smara.core.clock import Clock, SystemClock
from smara.core.deadline import Abort
from smara.core.escape import neutralize
from smara.core.prompts import Prompt, load_prompt
from smara.core.tokens import estimate_o200k
from smara.errors import BadReplyError, ModelRefusedError
from smara.messages.models import Message, Part, plain
from smara.models.chat import ChatModel, ChatReply, ChatRequest
from smara.observations.models import (
    AgentMode,
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
_THREAD = re.compile(r"\s*</?thread[\s>]")


@dataclass(frozen=True, slots=True)
class TranscriptLimits:
    """How much of a part is shown, in characters; what is longer loses its middle."""

    text: int = 60_000
    result: int = 4_000
    argument: int = 1_500
    reasoning: int = 300
    known_tokens: int = 2_000


def draw_mark(texts: Iterable[str], draw: Callable[[], str] | None = None) -> str:
    """A random mark that occurs in none of the texts."""
    folded = [text.casefold() for text in texts]
    for draw_one in [draw or _random_mark] * _DRAWS + [_long_mark]:
        mark = draw_one()
        if mark and not any(mark.casefold() in text for text in folded):
            break
    return mark


def _random_mark() -> str:
    return token_hex(4)


def _long_mark() -> str:
    """A mark that no text can hold: it has more bits than there are texts."""
    return token_hex(16)


class TranscriptPart(NamedTuple):
    """A part of a message: what its header says, still without the mark, and its words."""

    header: str
    text: str


def render_messages(
    messages: Sequence[Message], timezone: str, limits: TranscriptLimits
) -> list[TranscriptPart]:
    """The parts of messages. Each has a header, so that the output of a tool cannot go on in the
    user's voice.
    """
    names = {
        part.call_id: part.name
        for message in messages
        for part in message.parts
        if part.call_id and part.name
    }
    return [
        piece for message in messages for piece in _pieces(message, timezone, names, limits=limits)
    ]


def _pieces(
    message: Message, timezone: str, names: Mapping[str, str], limits: TranscriptLimits
) -> list[TranscriptPart]:
    shown = [_part(part, names, limits) for part in message.parts if _is_shown(part)] or [
        TranscriptPart("", "(empty)")
    ]
    who = f"#{message.seq} {message.role} {local(message.created_at, timezone):%a %Y-%m-%d %H:%M}"
    first, *rest = shown
    headed = [TranscriptPart(f"{who} {first.header}".rstrip(), first.text)]
    headed += [TranscriptPart(each.header or "says", each.text) for each in rest]
    return [TranscriptPart(piece.header, neutralize(piece.text)) for piece in headed]


def _is_shown(part: Part) -> bool:
    return bool(part.text.strip()) or part.type in ("tool_call", "tool_result", "image", "file")


def _part(part: Part, names: Mapping[str, str], limits: TranscriptLimits) -> TranscriptPart:
    if part.type == "text":
        return TranscriptPart("", cut(part.text, limits.text))
    if part.type == "reasoning":
        return TranscriptPart("thinks", cut(part.text, limits.reasoning))
    if part.type == "tool_call":
        written = [_arguments(part.arguments, limits), cut(part.text, limits.argument)]
        return TranscriptPart(
            f"calls {_short(part.name)}", "\n".join(text for text in written if text)
        )
    if part.type == "tool_result":
        failed = ", failed" if part.is_error else ""
        name = _short(part.name or names.get(part.call_id or ""))
        return TranscriptPart(
            f"result of {name}{failed}", cut(part.text, limits.result) or "(empty)"
        )
    return _placeholder(part)


def _short(name: str | None) -> str:
    """A tool's name as it may stand in a header: it comes from outside too."""
    return re.sub(r"[^\w.:/@-]", "_", (name or "tool")[:80])


def _arguments(arguments: Any, limits: TranscriptLimits) -> str:
    if arguments is None:
        return ""
    if not isinstance(arguments, Mapping):
        return cut(plain(arguments), limits.argument)
    return "; ".join(
        f"{name}={cut(plain(value), limits.argument)}" for name, value in arguments.items()
    )


def _placeholder(part: Part) -> TranscriptPart:
    size = f"{part.size_bytes:,} bytes" if part.size_bytes is not None else ""
    label = (
        ", ".join(each for each in (part.name or part.uri, part.media_type, size) if each)
        or "unnamed"
    )
    return TranscriptPart(
        part.type, f"({cut(label, 400)})" + (f" {cut(part.text, 2_000)}" if part.text else "")
    )


def cut(text: str, characters: int) -> str:
    """A text of at most about so many characters: its beginning and its end, and how much was
    between them.

    >>> cut("a" * 50 + "b" * 50, 40).split()[0], len(cut("short", 40))
    ('aaaaaaaaaaaaaaaaaaaaaaaa', 5)
    """
    if len(text) <= characters:
        return text
    head = characters * 3 // 5
    tail = characters - head
    return f"{text[:head]}{_CUT.format(left=len(text) - characters)}{text[-tail:]}"


def newest_known(known: str, tokens: int) -> str:
    """As much of the known observations as fits: the newest lines, and before them the high ones.

    Three quarters of the room go to the newest lines, the rest to the newest high ones
    among the older; each keeps the date it stands under.
    """
    lines = [
        line
        for line in known.splitlines()
        if line.strip() and not line.strip().startswith(("<thread", "</thread"))
    ]
    if estimate_o200k("\n".join(lines)) <= tokens:
        return "\n".join(lines)
    kept: set[int] = set()
    left = _take(lines, reversed(range(len(lines))), tokens * 0.75, kept=kept, is_stopping=True)
    older_high = [at for at in reversed(range(len(lines))) if at not in kept and _HIGH in lines[at]]
    _take(lines, older_high, tokens * 0.25 + left, kept=kept, is_stopping=False)
    shown = [lines[at] for at in sorted(kept | _headings(lines, kept))]
    return "\n".join([f"[{len(lines) - len(shown)} older lines are left out]", *shown])


def _take(
    lines: Sequence[str], order: Iterable[int], room: float, kept: set[int], is_stopping: bool
) -> float:
    """Keep lines in the given order while there is room; what room is left."""
    for at in order:
        cost = estimate_o200k(lines[at]) + 1
        if cost > room:
            if is_stopping:
                break
            continue
        kept.add(at)
        room -= cost
    return room


def _headings(lines: Sequence[str], kept: set[int]) -> set[int]:
    """The date headings under which kept lines stand."""
    found: set[int] = set()
    last: int | None = None
    for at, line in enumerate(lines):
        if line.startswith("Date:"):
            last = at
        elif at in kept and last is not None:
            found.add(last)
    return found


PROMPTS = Path(__file__).parent / "prompts"
MOST_LEVEL = 4
_ROLES: dict[Flavor, str] = {"coding": "an agent that writes code", "general": "an assistant"}


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """What is said to a model. ``own_words`` are ours alone: a reply that repeats them is an
    echo.
    """

    system: str
    prompt: str
    own_words: str
    material_tokens: int


def prompt_named(name: str) -> Prompt:
    """One of this room's prompts."""
    return load_prompt(PROMPTS, name)


def version_of(name: str) -> str:
    """A prompt with its version, as it is stored with what it produced: ``observer@1``."""
    return f"{name}@{prompt_named(name).version}"


def observer_request(
    request: ObserveRequest,
    limits: TranscriptLimits,
    draw: Callable[[], str] | None = None,
    reminder: str = "",
) -> ModelRequest:
    """What a model is told and shown to observe messages."""
    own = _observer_system(
        request.flavor,
        request.mode,
        request.wants_suggested_response,
        wants_title=request.wants_title,
    )
    pieces = render_messages(request.messages, request.timezone, limits)
    known = neutralize(newest_known(request.known, limits.known_tokens))
    mark = draw_mark(
        [known, own, request.instructions, *(text for piece in pieces for text in piece)], draw
    )
    history = "\n".join(f"[{mark} {piece.header}]\n{piece.text}" for piece in pieces)
    fenced = prompt_named("known").render({"mark": mark, "known": known}) + "\n\n" if known else ""
    prompt = prompt_named("observe").render(
        {"mark": mark, "known": fenced, "history": history, "reminder": reminder}
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
        prompt,
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
    """What a model is told and shown to condense observations at a level of compression."""
    own = _reflector_system(request.flavor)
    lines = neutralize(render(request.notes, request.timezone))
    tokens = round(estimate_o200k(lines))
    mark = draw_mark([lines, own, request.instructions], draw)
    guidance = f" {prompt_named(f'level_{level}').text}" if level else ""
    prompt = prompt_named("reflect").render(
        {
            "mark": mark,
            "lines": lines,
            "tokens": f"{tokens:,}",
            "target": f"{target_tokens:,}",
            "level": guidance,
            "reminder": reminder,
        }
    )
    return ModelRequest(own + _wishes(request.instructions), prompt, own, material_tokens=tokens)


def reminder_of(error: BadReplyError) -> str:
    """One line about what was wrong with the last reply, for the next attempt."""
    return "\n\n" + prompt_named("retry").render(
        {"reason": str(error.facts.get("hint") or "it could not be read.")}
    )


@lru_cache(maxsize=64)
def _observer_system(
    flavor: Flavor, mode: AgentMode, wants_response: bool, wants_title: bool
) -> str:
    extras = []
    if fields := describe_fields(mode):
        extras.append(prompt_named("extra_fields").render({"fields": fields}))
    if wants_title:
        extras.append(prompt_named("extra_title").text)
    if wants_response:
        extras.append(prompt_named("extra_response").text)
    return (
        prompt_named("observer")
        .render(
            {
                "role": _ROLES[flavor],
                "data": prompt_named("data").text,
                "lines": prompt_named("lines").text,
                "flavor": prompt_named(flavor).text,
                "mode": prompt_named(f"mode_{mode}").text,
                "example": prompt_named(f"example_{flavor}").text,
                "format": prompt_named("format").render({"time": "HH:MM #N"}),
                "extras": "\n".join(extras),
            }
        )
        .strip()
    )


@lru_cache(maxsize=8)
def _reflector_system(flavor: Flavor) -> str:
    return (
        prompt_named("reflector")
        .render(
            {
                "role": _ROLES[flavor],
                "data": prompt_named("data").text,
                "lines": prompt_named("lines").text,
                "flavor": prompt_named(flavor).text,
                "format": prompt_named("format").render({"time": "HH:MM"}),
            }
        )
        .strip()
    )


def _wishes(instructions: str) -> str:
    text = neutralize(instructions).strip()
    return (
        "\n\n" + prompt_named("extra_instructions").render({"instructions": text}) if text else ""
    )


_LEAST_OUTPUT, _MOST_OUTPUT = 4_000, 16_000
_LEAST_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class ReplyAttempts:
    """How a model is asked. ``deadline_seconds`` is for all attempts together; ``None`` leaves it
    to the model.
    """

    model: ChatModel
    attempts: int = 2
    deadline_seconds: float | None = None
    temperature: float | None = None
    output_tokens: int | None = None
    """How long a reply may be; by default in proportion to what it stands for."""
    clock: Clock = field(default_factory=SystemClock)

    def ends_at(self) -> float | None:
        """When everything that is asked from now on must have ended."""
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
        """The first draft that can be used.

        ``speak`` makes the request, given what was wrong with the last reply; ``read`` turns a
        reply into a draft or raises ``BadReplyError``. Raises the last one when no attempt
        succeeded, and every other error of the model as it comes: repeating those is not ours.
        """
        reminder = ""
        failure: BadReplyError | None = None
        for attempt in range(max(1, self.attempts)):
            if failure is not None and self.is_over(ends_at):
                break
            spoken = speak(reminder)
            is_cut_off = failure is not None and failure.facts.get("reason") == "truncated"
            tokens = self.output_tokens or output_tokens(spoken) * (2 if is_cut_off else 1)
            reply = self.model.complete(self._request(spoken, tokens, ends_at), abort)
            try:
                return read(reply, spoken)
            except BadReplyError as error:
                failure, reminder = error, reminder_of(error)
                log.warning(
                    "reply.refused",
                    model=self.model.name,
                    reason=error.facts.get("reason"),
                    attempt=attempt + 1,
                )
        raise _final(failure, self.model.name)

    def _request(self, spoken: ModelRequest, tokens: int, ends_at: float | None) -> ChatRequest:
        seconds = None if ends_at is None else max(0.01, ends_at - self.clock.monotonic())
        return ChatRequest(
            spoken.prompt,
            spoken.system,
            seconds,
            max_output_tokens=tokens,
            temperature=self.temperature,
        )

    def is_over(self, ends_at: float | None) -> bool:
        """Whether there is no time left to ask once more."""
        return ends_at is not None and ends_at - self.clock.monotonic() < _LEAST_SECONDS


def output_tokens(spoken: ModelRequest) -> int:
    """How long a reply may be: half of what it stands for, so that a loop is cut early.

    A history of 30,000 tokens gets 15,000 (its observations have 1,000 to 6,000); a model
    that thinks before it writes needs room even for a short one, so 4,000 is the least. A
    reply that was cut off gets twice as much the next time.
    """
    return min(_MOST_OUTPUT, max(_LEAST_OUTPUT, spoken.material_tokens // 2))


def _final(failure: BadReplyError | None, name: str) -> BadReplyError | ModelRefusedError:
    if failure is None:
        raise AssertionError("there is at least one attempt")
    if failure.facts.get("reason") != "refused":
        return failure
    return ModelRefusedError(
        f"{name} refuses to take notes of these messages. Configure another model, or observe "
        "without one.",
        reason="refusal",
    )
