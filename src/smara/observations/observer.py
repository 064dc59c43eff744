"""The observer that has a model: messages in, dated notes out, or an error and nothing changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from smara.core.clock import Clock, SystemClock
from smara.models.chat import Abort, ChatModel, ChatReply
from smara.observations.asking import Asking
from smara.observations.faithfulness import check_facts, check_language, check_observed_size
from smara.observations.models import Draft, ObserveRequest
from smara.observations.offline.paths import Paths
from smara.observations.parsing import Reading, parse_reply
from smara.observations.prompting import Spoken, observer_request, version_of
from smara.observations.reply.mentions import Source
from smara.observations.reply.timeline import Timeline
from smara.observations.reply.values import check_extractor
from smara.observations.transcript import Limits
from smara.observations.validity import check_reply, without_echo


class ModelObserver:
    """Lets a model take the notes, and believes it only what the messages bear out.

    Raises ``BadReplyError`` when no attempt gave a reply that can be used, and the model's
    own errors as they come. Calling it again is always safe: it keeps nothing.
    """

    def __init__(
        self,
        model: ChatModel,
        *,
        attempts: int = 2,
        deadline_seconds: float | None = None,
        temperature: float | None = None,
        output_tokens: int | None = None,
        limits: Limits | None = None,
        clock: Clock | None = None,
        draw_mark: Callable[[], str] | None = None,
    ) -> None:
        self.method = f"model:{model.name} {version_of('observer')}"
        self._asking = Asking(
            model,
            attempts,
            deadline_seconds,
            temperature=temperature,
            output_tokens=output_tokens,
            clock=clock or SystemClock(),
        )
        self._limits = limits or Limits()
        self._draw_mark = draw_mark

    def observe(self, request: ObserveRequest, abort: Abort | None = None) -> Draft:
        """What the messages tell, as a draft."""
        for extractor in request.extractors:
            check_extractor(extractor)
        source = "\n".join(message.raw_content for message in request.messages)
        # What the user asked to be noted may name things, and what is known may be referred to.
        known = Source([source, request.known, request.instructions])

        def read(reply: ChatReply, spoken: Spoken) -> Draft:
            text = without_echo(
                check_reply(reply.text, reply.finish, len(request.messages)), spoken.own_words
            )
            draft = check_facts(parse_reply(text, _reading(request)), known)
            check_language(draft.notes, source)
            check_observed_size(draft, spoken.material_tokens)
            return shortened(draft, request.root)

        def speak(reminder: str) -> Spoken:
            return observer_request(request, self._limits, self._draw_mark, reminder=reminder)

        return self._asking.ask(speak, read, self._asking.ends_at(), abort)


def _reading(request: ObserveRequest) -> Reading:
    return Reading(
        Timeline.of_messages(request.messages, request.timezone),
        request.mode,
        request.extractors,
        known=request.known,
        wants_suggested_response=request.wants_suggested_response,
        wants_title=request.wants_title,
    )


def shortened(draft: Draft, root: str) -> Draft:
    """The draft with the folder of the work left out of its paths, as the offline observer writes
    them.
    """
    if not root:
        return draft
    paths = Paths("", (), root)
    notes = tuple(
        replace(
            note,
            text=paths.shorten(note.text),
            details=tuple(map(paths.shorten, note.details)),
            files=tuple(dict.fromkeys(map(paths.short, note.files))),
        )
        for note in draft.notes
    )
    task = None if draft.current_task is None else paths.shorten(draft.current_task)
    return replace(draft, notes=notes, current_task=task)
