"""Build the observations room from the settings.

Chooses the observer and reflector (model or offline) and the thresholds.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from smara.config import Settings
from smara.core.background import Background
from smara.core.deadline import Abort
from smara.database.projects import ProjectContext
from smara.errors import ConfigError, InvalidInputError
from smara.messages.store import MessageStore
from smara.messages.threads import Threads
from smara.models.caller import Models
from smara.models.chat import ChatReply, ChatRequest
from smara.observations.cycle import ObservationCycle
from smara.observations.models import MODES, AgentMode, Extractor, Observer, Reflector
from smara.observations.observations import Observations
from smara.observations.offline import OfflineObserver, OfflineReflector
from smara.observations.reader import JudgeCode
from smara.observations.reflection import ReflectionCycle
from smara.observations.retries import FailureLog, OutageGate
from smara.observations.store import ObservationStore
from smara.observations.thresholds import Thresholds, for_mode
from smara.observations.worker import DueRules, Worker


class _PurposeModel:
    """The models of a memory as one model with one purpose."""

    def __init__(self, models: Models, purpose: str) -> None:
        self.name = ", ".join(models.names_for(purpose))
        self._models = models
        self._purpose = purpose

    def complete(self, request: ChatRequest, abort: Abort | None = None) -> ChatReply:
        return self._models.complete(request, self._purpose, abort)


def thresholds_of(settings: Settings) -> Thresholds:
    """Return the limits that the settings name."""
    return Thresholds(
        settings.observe_after_tokens,
        settings.reflect_after_tokens,
        settings.buffer_fraction,
        activate_fraction=settings.activate_fraction,
        retain_fraction=settings.retain_fraction,
        block_fraction=settings.block_fraction,
        reflections_limit=settings.reflections_limit_tokens,
        reflect_ahead_fraction=settings.reflect_ahead_fraction,
    )


def parse_modes(text: str | None) -> dict[str, int]:
    """Read the thresholds of modes as a setting names them.

    >>> parse_modes("explore=50000; testing=20000"), parse_modes(None)
    ({'explore': 50000, 'testing': 20000}, {})
    """
    found: dict[str, int] = {}
    for entry in filter(None, (each.strip() for each in (text or "").split(";"))):
        mode, _, tokens = (piece.strip() for piece in entry.partition("="))
        if mode not in MODES or not tokens.isdecimal() or int(tokens) < 1:
            raise ConfigError(
                f"observe_modes: {entry!r} is no threshold of a mode. Write it as explore=50000; "
                "testing=20000, with "
                f"the modes {', '.join(MODES)}."
            )
        found[mode] = int(tokens)
    return found


def request_options(text: str | None, name: str) -> dict[str, Any]:
    """Read the settings of requests from the JSON of a setting.

    >>> request_options('{"temperature": 0.3}', "observe_model_settings")
    {'temperature': 0.3}
    """
    try:
        found = json.loads(text or "{}")
        ChatRequest("", settings={key: found[key] for key in found if key != "temperature"})
        if not isinstance(found.get("temperature", 0.0), int | float):
            raise ValueError("temperature is no number")
    except (ValueError, TypeError, AttributeError, InvalidInputError) as error:
        raise ConfigError(
            f'{name} must be a JSON object such as {{"temperature": 0.3}}: {error}'
        ) from None
    return dict(found)


def make_observations(
    project: ProjectContext,
    messages: MessageStore,
    threads: Threads,
    *,
    models: Models,
    gate: OutageGate,
    extractors: Sequence[Extractor] = (),
    embed: Callable[[], int] | None = None,
    learn: Callable[[], int] | None = None,
    note: Callable[[dict[str, int]], None] | None = None,
    judge_code: JudgeCode | None = None,
) -> tuple[Observations, Worker, Background]:
    """Make the room, its worker, and its background thread.

    Args:
        project: The project that is observed.
        messages: The store of its messages.
        threads: Its threads.
        models: What observes and reflects, unless offline.
        gate: What other projects of the process know of a model that cannot be reached.
        extractors: Values of the user's own that are taken out of messages.
        embed: What a worker does besides: vectors of what was written.
        learn: What a worker does besides: decide on ended sessions, and the daily jobs.
        note: Hears what came of each round of a worker that did something.
        judge_code: How observations stand to the code they name, by number.

    Returns:
        The room, the worker of its project, and the thread that observes in the background.
    """
    settings = project.settings
    base = thresholds_of(settings)
    overrides = parse_modes(settings.observe_modes)
    store = ObservationStore(project.database, project.scope)
    owner = f"{socket.gethostname()}:{os.getpid()}:{project.new_id()[-8:]}"
    observer: Observer = OfflineObserver()
    reflector: Reflector = OfflineReflector()
    if models.names_for("observe"):
        from smara.observations.observer import ModelObserver

        options = request_options(settings.observe_model_settings, "observe_model_settings")
        observer = ModelObserver(_PurposeModel(models, "observe"), options=options)
    if models.names_for("reflect"):
        from smara.observations.observer import ModelReflector

        options = request_options(settings.reflect_model_settings, "reflect_model_settings")
        reflector = ModelReflector(_PurposeModel(models, "reflect"), options=options)

    def limits_for(mode: AgentMode) -> Thresholds:
        if mode in overrides:
            return replace(base, observe_after=overrides[mode])
        return for_mode(base, mode, settings.observe_after_tokens == Thresholds().observe_after)

    background = Background("smara-background")
    observations = Observations(
        project,
        store,
        messages,
        threads=threads,
        cycle=ObservationCycle(
            project,
            store,
            messages,
            observer=observer,
            fallback=OfflineObserver(),
            limits_for=limits_for,
            failures=FailureLog(project.clock, store, gate),
            owner=owner,
            extractors=extractors,
        ),
        reflecting=ReflectionCycle(
            project,
            store,
            reflector=reflector,
            fallback=OfflineReflector(),
            limits=base,
            owner=owner,
        ),
        background=background,
        limits_for=limits_for,
        judge_code=judge_code,
    )
    worker = Worker(
        project.clock,
        store,
        observations,
        rules=due_rules(settings),
        embed=embed,
        learn=learn,
        note=note,
    )
    return observations, worker, background


def due_rules(settings: Settings) -> DueRules:
    """Return when a worker finds a thread due."""
    return DueRules(
        settings.observe_scope,
        thresholds_of(settings).buffer_after,
        settings.observe_stale_minutes * 60_000,
    )
