"""Build the observations room from the settings.

Chooses the observer and reflector (model or offline) and the thresholds.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from smara.config import Settings
from smara.core.clock import Clock
from smara.core.deadline import Abort
from smara.core.ids import IdMaker
from smara.core.scope import Scope as Wall
from smara.core.tokens import TokenCounter
from smara.database.database import Database
from smara.database.leases import Leases
from smara.errors import ConfigError
from smara.messages.store import MessageStore
from smara.messages.threads import Threads
from smara.models.caller import Models
from smara.models.chat import ChatReply, ChatRequest
from smara.observations.background import Background
from smara.observations.cycle import CycleSettings, ObservationCycle
from smara.observations.models import MODES, AgentMode, Extractor, Observer, Reflector
from smara.observations.observations import JudgeCode, Observations, known_text
from smara.observations.offline import OfflineObserver, OfflineReflector
from smara.observations.reflection import ReflectionCycle
from smara.observations.retries import FailureLog, OutageGate
from smara.observations.store import ObservationStore
from smara.observations.thresholds import Thresholds, for_mode
from smara.observations.worker import DueRules, Worker


@dataclass(frozen=True, slots=True)
class ObservationParts:
    """What a memory hands to this room."""

    database: Database
    wall: Wall
    messages: MessageStore
    threads: Threads
    leases: Leases
    models: Models
    clock: Clock
    new_id: IdMaker
    counter: TokenCounter
    settings: Settings
    timezone: str
    extractors: Sequence[Extractor] = ()
    embed: Callable[[], int] | None = None
    """What a worker does besides: vectors of what was written, which another room makes."""
    gate: OutageGate | None = None
    """What other projects of the process know of a model that cannot be reached."""
    learn: Callable[[], int] | None = None
    """What a worker does besides: deciding on sessions that have ended, and the daily jobs, in
    another room.
    """
    judge_code: JudgeCode | None = None
    """How observations stand to the code they name, by number; known in another room."""


class _PurposeModel:
    """The models of a memory as one model, whose calls are told apart by their purpose."""

    def __init__(self, models: Models, purpose: str) -> None:
        self.name = ", ".join(models.names)
        self._models = models
        self._purpose = purpose

    def complete(self, request: ChatRequest, abort: Abort | None = None) -> ChatReply:
        return self._models.complete(request, self._purpose, abort)


def thresholds_of(settings: Settings) -> Thresholds:
    """The limits that the settings ask for."""
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
    """Thresholds of modes as a setting names them.

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


def make_observations(parts: ObservationParts) -> tuple[Observations, Worker, Background]:
    """The room, its worker, and the thread that works in the background."""
    settings = parts.settings
    base = thresholds_of(settings)
    is_default = settings.observe_after_tokens == Thresholds().observe_after
    store = ObservationStore(parts.database, parts.wall)
    observer, reflector = _observer(parts.models), _reflector(parts.models)
    owner = f"{socket.gethostname()}:{os.getpid()}:{parts.new_id()[-8:]}"
    known = known_text(store, parts.timezone)

    overrides = parse_modes(settings.observe_modes)
    failing = FailureLog(store, parts.clock, parts.gate)

    def limits_for(mode: AgentMode) -> Thresholds:
        if mode in overrides:
            return replace(base, observe_after=overrides[mode])
        return for_mode(base, mode, is_default)

    def cycle_for(mode: AgentMode) -> ObservationCycle:
        limits = limits_for(mode)
        chosen = CycleSettings(
            limits,
            parts.timezone,
            settings.observe_flavor,
            instructions=settings.observe_instructions or "",
            wants_suggested_response=settings.suggest_response,
            extractors=parts.extractors,
            most_batch_tokens=limits.observe_after,
            most_waiting_tokens=2 * settings.observe_after_tokens,
        )
        return ObservationCycle(
            store,
            parts.messages,
            parts.leases,
            clock=parts.clock,
            new_id=parts.new_id,
            counter=parts.counter,
            observer=observer,
            fallback=OfflineObserver(),
            settings=chosen,
            owner=owner,
            known=known,
            failing=failing,
        )

    reflecting = ReflectionCycle(
        store,
        parts.leases,
        parts.clock,
        new_id=parts.new_id,
        counter=parts.counter,
        reflector=reflector,
        fallback=OfflineReflector(),
        limits=base,
        timezone=parts.timezone,
        owner=owner,
        flavor=settings.observe_flavor,
        instructions=settings.observe_instructions or "",
    )
    background = Background()
    is_writing = settings.observe_enabled and not settings.observe_read_only
    observations = Observations(
        store,
        parts.messages,
        parts.threads,
        cycle_for=cycle_for,
        reflecting=reflecting,
        background=background,
        scope=settings.observe_scope,
        limits_for=limits_for,
        timezone=parts.timezone,
        is_writing=is_writing,
        judge_code=parts.judge_code,
    )
    worker = Worker(
        store,
        observations,
        parts.clock,
        scope=settings.observe_scope,
        buffer_after_tokens=base.buffer_after,
        stale_after_minutes=settings.observe_stale_minutes,
        embed=parts.embed,
        learn=parts.learn,
    )
    return observations, worker, background


def due_rules(settings: Settings) -> DueRules:
    """When a worker finds a thread due."""
    return DueRules(
        settings.observe_scope,
        thresholds_of(settings).buffer_after,
        settings.observe_stale_minutes * 60_000,
    )


def _observer(models: Models) -> Observer:
    if models.is_offline:
        return OfflineObserver()
    from smara.observations.observer import ModelObserver

    return ModelObserver(_PurposeModel(models, "observe"))


def _reflector(models: Models) -> Reflector:
    if models.is_offline:
        return OfflineReflector()
    from smara.observations.observer import ModelReflector

    return ModelReflector(_PurposeModel(models, "reflect"))
