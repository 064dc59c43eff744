"""Render observations and the outcome of an observation run.

A run that failed is raised as the error of its code, so that the exit code is right.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from smara.core.freshness import Freshness
from smara.errors import BusyError, ConfigError, SmaraError
from smara.memory import Memory
from smara.observations.models import (
    CycleOutcome,
    Observation,
    ObservationFailure,
    ObservationWarning,
)
from smara.surfaces.cli.render.memories import code_json

_TAKEN = ("in_progress", "lease_lost")


def require_writing(memory: Memory) -> None:
    """Say which setting is in the way where nothing may be observed."""
    settings = memory.settings
    if not settings.observe_enabled:
        raise ConfigError(
            "Observing is turned off here. Set observe_enabled to true, or SMARA_OBSERVE_ENABLED=1."
        )
    if settings.observe_read_only:
        raise ConfigError(
            "Observations are read-only here. Set observe_read_only to false, or "
            "SMARA_OBSERVE_READ_ONLY=0."
        )


def require_success(outcome: CycleOutcome) -> None:
    """Turn a refusal into the error it came from, so that it leaves with that error's exit code."""
    if outcome.success:
        return
    said = (outcome.error or "It failed for an unknown reason.").strip()
    said = said if said.endswith((".", "!", "?")) else f"{said}."
    if outcome.messages:
        said += f" {outcome.messages:,} messages were observed before that, and stay so."
    if outcome.code in _TAKEN:
        raise BusyError(f"{said} Nothing was done twice; call it again in a moment.")
    raise _errors_by_code().get(outcome.code or "", SmaraError)(said)


def _errors_by_code() -> dict[str, type[SmaraError]]:
    def below(kind: type[SmaraError]) -> Iterator[type[SmaraError]]:
        for each in kind.__subclasses__():
            yield each
            yield from below(each)

    return {kind.code: kind for kind in below(SmaraError)}


def recovery(outcome: CycleOutcome) -> list[str]:
    """What a worker that died had left behind, told as a warning."""
    if outcome.recovered is None:
        return []
    owner = outcome.recovered.get("owner", "another worker")
    return [
        f"{owner} had stopped in the middle of observing; its claim was cleared, and nothing was "
        "lost."
    ]


def outcome_json(outcome: CycleOutcome) -> dict[str, Any]:
    """What came of an attempt, as JSON."""
    return {
        "action": outcome.action,
        "success": outcome.success,
        "messages": outcome.messages,
        "notes": outcome.notes,
        "error": outcome.error,
        "code": outcome.code,
        "retryable": outcome.is_retryable,
        "recovered": dict(outcome.recovered) if outcome.recovered is not None else None,
    }


def observation_json(observation: Observation, code: Freshness | None = None) -> dict[str, Any]:
    """An observation as JSON, with how it stands to the code it names."""
    return {
        "id": observation.id,
        "kind": observation.kind,
        "state": observation.state,
        "generation": observation.generation,
        "threadId": observation.thread_id,
        "mode": observation.mode,
        "priority": observation.priority,
        "category": observation.category,
        "text": observation.text,
        "details": list(observation.details),
        "files": list(observation.files),
        "lines": list(observation.lines),
        "modeSpecific": dict(observation.mode_specific),
        "taint": list(observation.taint),
        "saidAt": observation.said_at,
        "refersTo": observation.refers_to,
        "tokens": observation.tokens,
        "firstSeq": observation.first_seq,
        "lastSeq": observation.last_seq,
        "method": observation.method,
        "createdAt": observation.created_at,
        "reflectedInto": observation.reflected_into,
        "code": code_json(code),
    }


def failure_json(failure: ObservationFailure) -> dict[str, Any]:
    """A failed job as JSON."""
    return {
        "operation": failure.operation,
        "threadId": failure.thread_id,
        "firstSeq": failure.first_seq,
        "attempts": failure.attempts,
        "code": failure.code,
        "message": failure.message,
        "isDead": failure.is_dead,
        "failedAt": failure.failed_at,
        "retryAt": failure.retry_at,
    }


def warned_json(warned: ObservationWarning) -> dict[str, Any]:
    """What was left out somewhere, as JSON."""
    return {
        "threadId": warned.thread_id,
        "firstSeq": warned.first_seq,
        "lastSeq": warned.last_seq,
        "warnings": list(warned.warnings),
        "createdAt": warned.created_at,
    }


def source(observation: Observation) -> str:
    """The messages an observation comes from, as ``first–last``."""
    first, last = observation.first_seq, observation.last_seq
    return str(first) if first == last else f"{first}–{last}"
