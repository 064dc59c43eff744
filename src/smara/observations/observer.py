"""Observe and reflect with a chat model.

ModelObserver turns messages into dated notes. ModelReflector turns many notes into
fewer. Either returns a checked draft, or raises and changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from smara.core.clock import Clock, SystemClock
from smara.core.deadline import Abort
from smara.core.tokens import TokenCounter, counter_for
from smara.errors import BadReplyError, BudgetSpentError, ModelUnavailableError
from smara.models.chat import ChatModel, ChatReply
from smara.observations.models import Note, ObservationDraft, ObserveRequest, ReflectRequest
from smara.observations.offline.notes import PathShortener
from smara.observations.render import render
from smara.observations.reply.check import (
    check_condensed_size,
    check_facts,
    check_language,
    check_observed_size,
    check_reply,
    refuse,
    without_echo,
)
from smara.observations.reply.dates import Timeline
from smara.observations.reply.mentions import SourceText
from smara.observations.reply.parse import ReplyContext, check_extractor, parse_reply
from smara.observations.request import (
    MOST_LEVEL,
    ModelRequest,
    ReplyAttempts,
    TranscriptLimits,
    observer_request,
    reflector_request,
    version_of,
)


class ModelObserver:
    """An observer that believes a model only what the messages bear out.

    Raises ``BadReplyError`` when no attempt gave a reply that can be used, and the model's
    own errors as they come. Calling it again is always safe: it keeps nothing.
    """

    def __init__(
        self,
        model: ChatModel,
        *,
        attempts: int = 2,
        deadline_seconds: float | None = None,
        options: Mapping[str, Any] | None = None,
        output_tokens: int | None = None,
        limits: TranscriptLimits | None = None,
        clock: Clock | None = None,
        draw_mark: Callable[[], str] | None = None,
    ) -> None:
        self.method = f"model:{model.name} {version_of('observer')}"
        self._asking = ReplyAttempts(
            model,
            attempts,
            deadline_seconds,
            options=options or {},
            output_tokens=output_tokens,
            clock=clock or SystemClock(),
        )
        self._limits = limits or TranscriptLimits()
        self._draw_mark = draw_mark

    def observe(self, request: ObserveRequest, abort: Abort | None = None) -> ObservationDraft:
        """Observe messages, and return a draft of notes."""
        for extractor in request.extractors:
            check_extractor(extractor)
        source = "\n".join(message.raw_content for message in request.messages)
        # What the user asked to be noted may name things, and what is known may be referred to.
        source_facts = SourceText([source, request.known, request.instructions])

        def read(reply: ChatReply, spoken: ModelRequest) -> ObservationDraft:
            text = without_echo(
                check_reply(reply.text, reply.finish, len(request.messages)), spoken.own_words
            )
            context = ReplyContext(
                Timeline.of_messages(request.messages, request.timezone),
                request.mode,
                request.extractors,
                known=request.known,
                wants_suggested_response=request.wants_suggested_response,
                wants_title=request.wants_title,
            )
            draft = check_facts(parse_reply(text, context), source_facts)
            check_language(draft.notes, source)
            check_observed_size(draft, spoken.material_tokens)
            return shortened(replace(draft, method=_method(reply, "observer")), request.root)

        def speak(reminder: str) -> ModelRequest:
            return observer_request(request, self._limits, self._draw_mark, reminder=reminder)

        return self._asking.ask(speak, read, self._asking.ends_at(), abort)


def _method(reply: ChatReply, prompt: str) -> str:
    """Name the one model that answered; of tiers the setting names them all."""
    return f"model:{reply.name} {version_of(prompt)}" if reply.name else ""


def shortened(draft: ObservationDraft, root: str) -> ObservationDraft:
    """Leave the folder of the work out of a draft's paths."""
    if not root:
        return draft
    paths = PathShortener(root)
    return replace(
        draft,
        notes=tuple(
            replace(
                note,
                text=paths.shorten(note.text),
                details=tuple(map(paths.shorten, note.details)),
                files=tuple(dict.fromkeys(map(paths.short, note.files))),
            )
            for note in draft.notes
        ),
        current_task=None if draft.current_task is None else paths.shorten(draft.current_task),
    )


# A level that leaves more than this of what the level before it left has made no progress.
_PROGRESS = 0.95


class ModelReflector:
    """A reflector that lets a model condense notes.

    Raises ``BadReplyError`` when nothing valid and smaller came of it; the notes are then as
    they were. Calling it again is always safe: it keeps nothing.
    """

    def __init__(
        self,
        model: ChatModel,
        *,
        attempts: int = 2,
        deadline_seconds: float | None = None,
        options: Mapping[str, Any] | None = None,
        output_tokens: int | None = None,
        counter: TokenCounter | None = None,
        clock: Clock | None = None,
        draw_mark: Callable[[], str] | None = None,
    ) -> None:
        self.method = f"model:{model.name} {version_of('reflector')}"
        self._asking = ReplyAttempts(
            model,
            attempts,
            deadline_seconds,
            options=options or {},
            output_tokens=output_tokens,
            clock=clock or SystemClock(),
        )
        self._counter = counter or counter_for()
        self._draw_mark = draw_mark

    def reflect(self, request: ReflectRequest, abort: Abort | None = None) -> ObservationDraft:
        """Condense notes to ``target_tokens``, or as near as possible."""
        before = self._size(request.notes, request)
        target = max(1, min(request.target_tokens, before - 1))
        ends_at = self._asking.ends_at()
        first = min(max(request.level, 0), MOST_LEVEL)
        source = ["\n".join([note.text, *note.details]) for note in request.notes]
        context = ReplyContext(Timeline.of_notes(request.notes, request.timezone))
        best: ObservationDraft | None = None

        def read(reply: ChatReply, spoken: ModelRequest) -> ObservationDraft:
            text = without_echo(
                check_reply(reply.text, reply.finish, len(request.notes)), spoken.own_words
            )
            facts = SourceText([*source, request.instructions, request.current_task])
            draft = check_facts(parse_reply(text, context), facts)
            check_language(draft.notes, "\n".join(source))
            check_condensed_size(draft, request.notes)
            return replace(draft, method=_method(reply, "reflector"))

        smallest = last = before
        for level in range(first, MOST_LEVEL + 1):
            if level > first and self._asking.is_over(ends_at):
                break
            try:
                speak = partial(reflector_request, request, level, target, self._draw_mark)
                draft = self._asking.ask(speak, read, ends_at, abort)
            except (BadReplyError, ModelUnavailableError, BudgetSpentError):
                if best is None:
                    raise
                break
            size = self._size(draft.notes, request)
            if size < smallest:
                best, smallest = draft, size
            if smallest <= target or (level > first and size > last * _PROGRESS):
                break
            last = size
        if best is None:
            raise refuse(
                "not_smaller",
                f"The model made nothing smaller of {before:,} tokens.",
                "it was no smaller than the lines.",
            )
        return best

    def _size(self, notes: Sequence[Note], request: ReflectRequest) -> int:
        return self._counter.count(render(notes, request.timezone)).tokens
