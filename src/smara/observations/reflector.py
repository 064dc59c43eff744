"""The reflector that has a model: many notes in, fewer out, and never more than went in.

It begins gently and presses harder, level by level, until the result is as small as was
asked. When a level makes nothing smaller it stops and keeps the smallest that is valid.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from smara.core.clock import Clock, SystemClock
from smara.core.tokens import TokenCounter, counter_for
from smara.errors import BadReplyError, BudgetSpentError, ModelUnavailableError
from smara.models.chat import Abort, ChatModel, ChatReply
from smara.observations.asking import Asking
from smara.observations.faithfulness import check_condensed_size, check_facts, check_language
from smara.observations.models import Draft, Note, ReflectRequest
from smara.observations.parsing import Reading, parse_reply
from smara.observations.prompting import MOST_LEVEL, Spoken, reflector_request, version_of
from smara.observations.render import render
from smara.observations.reply.mentions import Source
from smara.observations.reply.timeline import Timeline
from smara.observations.validity import check_reply, refuse, without_echo

_PROGRESS = 0.95
"""A level that leaves more than this of what the level before it left has made no progress."""


class ModelReflector:
    """Lets a model condense notes.

    Raises ``BadReplyError`` when nothing valid and smaller came of it; the notes are then as
    they were. Calling it again is always safe: it keeps nothing.
    """

    def __init__(
        self,
        model: ChatModel,
        *,
        attempts: int = 2,
        deadline_seconds: float | None = None,
        temperature: float | None = None,
        output_tokens: int | None = None,
        counter: TokenCounter | None = None,
        clock: Clock | None = None,
        draw_mark: Callable[[], str] | None = None,
    ) -> None:
        self.method = f"model:{model.name} {version_of('reflector')}"
        self._asking = Asking(
            model,
            attempts,
            deadline_seconds,
            temperature=temperature,
            output_tokens=output_tokens,
            clock=clock or SystemClock(),
        )
        self._counter = counter or counter_for()
        self._draw_mark = draw_mark

    def reflect(self, request: ReflectRequest, abort: Abort | None = None) -> Draft:
        """The notes condensed to at most ``target_tokens``, or as near to it as the model gets."""
        before = self._size(request.notes, request)
        target = max(1, min(request.target_tokens, before - 1))
        ends_at = self._asking.ends_at()
        first = min(max(request.level, 0), MOST_LEVEL)
        best: Draft | None = None
        smallest = last = before
        for level in range(first, MOST_LEVEL + 1):
            if level > first and self._asking.is_over(ends_at):
                break
            try:
                draft = self._at_level(request, level, target, ends_at=ends_at, abort=abort)
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

    def _at_level(
        self,
        request: ReflectRequest,
        level: int,
        target: int,
        ends_at: float | None,
        abort: Abort | None,
    ) -> Draft:
        speak = partial(_speak, request, level, target, self._draw_mark)
        return self._asking.ask(speak, partial(_read, request), ends_at, abort)

    def _size(self, notes: Sequence[Note], request: ReflectRequest) -> int:
        return self._counter.count(render(notes, request.timezone)).tokens


def _speak(
    request: ReflectRequest,
    level: int,
    target: int,
    draw_mark: Callable[[], str] | None,
    reminder: str,
) -> Spoken:
    return reflector_request(request, level, target, draw=draw_mark, reminder=reminder)


def _read(request: ReflectRequest, reply: ChatReply, spoken: Spoken) -> Draft:
    whole = ["\n".join([note.text, *note.details]) for note in request.notes]
    text = without_echo(check_reply(reply.text, reply.finish, len(request.notes)), spoken.own_words)
    reading = Reading(Timeline.of_notes(request.notes, request.timezone))
    draft = check_facts(parse_reply(text, reading), Source([*whole, request.instructions]))
    check_language(draft.notes, "\n".join(whole))
    check_condensed_size(draft, request.notes)
    return draft
