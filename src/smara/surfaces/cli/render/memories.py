"""Render memories and their freshness as JSON and as terminal lines.

A line states the memory first, then its type and confidence. The JSON `id` is the short id.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import click

from smara.core.freshness import Freshness
from smara.knowledge.models import AddResult, Evidence, MemoryEvent, TypedMemory
from smara.surfaces.cli import output
from smara.surfaces.cli.render.tasks import cells, cut, pad, styled

_MOST = 4


def code_json(code: Freshness | None) -> dict[str, Any] | None:
    """The verdict and what it rests on; ``None`` for what names no code that is known here."""
    if code is None:
        return None
    return {
        "verdict": code.verdict,
        "changed": code.changed,
        "told": code.telling,
        "hedge": code.hedge,
        "anchors": [
            {
                "verdict": each.verdict,
                "path": each.path,
                "symbol": each.symbol or None,
                "nowPath": each.now_path,
                "nowSymbol": each.now_symbol or None,
                "firstLine": each.first_line,
                "lastLine": each.last_line,
                "changed": each.changed,
                "commit": each.commit,
                "why": each.why or None,
            }
            for each in code.anchors
        ],
    }


def code_word(code: Freshness | None) -> str:
    """The verdict as a word or two; nothing for what is as it was.

    >>> code_word(Freshness("drifted", changed=0.4)), code_word(Freshness("orphaned")), code_word(Freshness("fresh"))
    ('code drifted 40 %', 'code gone', '')
    """  # noqa: E501
    if code is None or code.verdict == "fresh":
        return ""
    if code.verdict == "drifted":
        return (
            "code drifted"
            if code.changed is None
            else f"code drifted {code.changed:.0%}".replace("%", " %")
        )
    return {"moved": "code moved", "orphaned": "code gone", "unknown": "code being read again"}[
        code.verdict
    ]


def code_line(code: Freshness | None) -> str:
    """What became of all the code a memory names, in one line."""
    if code is None:
        return ""
    shown = "; ".join(code.lines[:_MOST])
    return shown + (f"; and {len(code.lines) - _MOST} more" if len(code.lines) > _MOST else "")


_MARKS: dict[str, tuple[str, str, str | None]] = {
    "confirmed": ("✓", "+", "green"), "unconfirmed": ("○", "o", None), "observed": ("◇", "*",
    "yellow"),
    "quarantined": ("⚠", "!", "red"), "put aside": ("✗", "x", None),
}  # fmt: skip
_LINES_SHOWN = 2
_FENCE = re.compile(r"`{3,}\w*")
COLUMNS = (
    "memory", "type", "confidence", "trust", "state", "review", "source", "files", "evidence",
    "content",
)  # fmt: skip


def state_of(memory: TypedMemory, code: Freshness | None = None) -> str:
    """How a memory stands: active, pinned, stale, what became of its code, or how it was put
    aside.
    """
    if not memory.is_active:
        return memory.deprecated_because or "put aside"
    states = [
        name for name, holds in (("pinned", memory.is_pinned), ("stale", memory.is_stale)) if holds
    ]
    return ", ".join(filter(None, (" ".join(states), code_word(code)))) or "active"


def mark(memory: TypedMemory) -> str:
    """The mark of a memory's trust, in its color."""
    sign, plain, color = _MARKS[_mark_name(memory)]
    return styled(sign if output.encodable(sign) == sign else plain, fg=color)


def legend(memories: Iterable[TypedMemory]) -> str:
    """What the marks of some memories mean."""
    shown = {_mark_name(each): mark(each) for each in memories}
    return "  ".join(f"{shown[name]} {name}" for name in _MARKS if name in shown)


def _mark_name(memory: TypedMemory) -> str:
    return memory.tier if memory.is_active else "put aside"


def print_list(
    memories: Sequence[TypedMemory],
    worth: dict[str, float],
    with_reasons: bool = False,
    code: Mapping[str, Freshness] | None = None,
) -> None:
    """Some memories; ``worth`` is their confidence now and ``code`` how their code stands, by id.

    In a pipe, one row for each.
    """
    found = code or {}
    if not output.is_terminal():
        rows = [
            row(each, worth.get(each.id, each.confidence), found.get(each.id)) for each in memories
        ]
        output.table(COLUMNS, rows)
        return
    width = max((cells(each.short_id) for each in memories), default=0)
    for each in memories:
        _print_one(
            each,
            worth.get(each.id, each.confidence),
            width,
            with_reasons=with_reasons,
            code=found.get(each.id),
        )


def row(memory: TypedMemory, confidence: float, code: Freshness | None = None) -> tuple[Any, ...]:
    """A memory as a row for a pipe; see ``COLUMNS``."""
    return (
        memory.short_id,
        memory.type,
        f"{confidence:.2f}",
        memory.tier,
        state_of(memory, code),
        "; ".join(memory.review_reasons) if memory.needs_review else "",
        memory.source,
        ", ".join(memory.files),
        ", ".join(str(each) for each in memory.evidence),
        memory.content,
    )


def _print_one(
    memory: TypedMemory,
    confidence: float,
    id_cells: int,
    with_reasons: bool,
    code: Freshness | None,
) -> None:
    indent = " " * (id_cells + 4)
    first, *others = shown_lines(
        memory.content, output.terminal_width() - len(indent), _LINES_SHOWN
    )
    name = styled(pad(memory.short_id, id_cells), bold=True)
    click.echo(f"{mark(memory)} {name}  {styled(first, dim=not memory.is_active)}")
    for line in others:
        click.echo(f"{indent}{styled(line, dim=not memory.is_active)}")
    _dimmed(facts(memory, confidence, with_reasons, code=code), indent)
    if with_reasons and memory.review_reasons:
        output.say(output.paragraph("; ".join(memory.review_reasons), indent, indent), fg="yellow")


def shown_lines(text: str, width: int, most: int) -> list[str]:
    """The beginning of a text as lines that fit; code blocks lose their marks."""
    import textwrap

    plain = " ".join(_FENCE.sub(" ", output.printable(text)).split())
    lines = textwrap.wrap(
        plain, max(20, width), break_on_hyphens=False, max_lines=most, placeholder=" …"
    )
    return [cut(line, max(20, width)) for line in lines] or [""]


def facts(
    memory: TypedMemory,
    confidence: float,
    is_in_review: bool = False,
    code: Freshness | None = None,
) -> str:
    """What kind of memory it is, what it is worth, and where it comes from, in one line."""
    state = state_of(memory, code)
    trust = memory.tier if not memory.is_tainted else f"{memory.tier} ({', '.join(memory.taint)})"
    place = _place(memory.evidence[0]) if memory.evidence else ", ".join(memory.files[:2])
    more = f" +{len(memory.evidence) - 1}" if len(memory.evidence) > 1 else ""
    parts = [
        memory.type,
        f"{confidence:.0%}",
        trust,
        "" if state == "active" else state,
        "needs review" if memory.needs_review and memory.is_active and not is_in_review else "",
        place + more,
    ]
    return " · ".join(part for part in parts if part)


def _place(evidence: Evidence) -> str:
    """Where something stands, without its commit: that is on the card."""
    return str(replace(evidence, commit=None)) if evidence.path else str(evidence)


def _dimmed(text: str, indent: str) -> None:
    output.say(output.paragraph(output.printable(text), indent, indent), dim=True)


def changed(memories: Iterable[TypedMemory], verb: str) -> None:
    """Tell changes: a sentence for each on a terminal; id, state and content in a pipe."""
    for each in memories:
        if output.is_terminal():
            said = shown_lines(
                f"{verb} {each.short_id}: {each.content}", output.terminal_width() - 2, _LINES_SHOWN
            )
            output.say("\n  ".join(said))
        else:
            output.row((each.short_id, state_of(each), each.content))


def memory_json(
    memory: TypedMemory, confidence: float | None = None, code: Freshness | None = None
) -> dict[str, Any]:
    """A memory; ``confidence`` is what it is worth now and ``code`` how its code stands, where
    somebody looked.
    """
    unit, chunk = memory.work_unit, memory.chunk
    return {
        "id": memory.short_id,
        "uuid": memory.id,
        "type": memory.type,
        "content": memory.content,
        "confidence": memory.confidence,
        "confidenceNow": confidence,
        "tier": memory.tier,
        "isTainted": memory.is_tainted,
        "taint": list(memory.taint),
        "needsReview": memory.needs_review,
        "reviewReasons": list(memory.review_reasons),
        "isVerified": memory.is_verified,
        "verifiedAt": memory.verified_at,
        "verifiedBy": memory.verified_by,
        "isPinned": memory.is_pinned,
        "isStale": memory.is_stale,
        "staleAt": memory.stale_at,
        "staleBecause": memory.stale_because,
        "isActive": memory.is_active,
        "deprecatedAt": memory.deprecated_at,
        "deprecatedBecause": memory.deprecated_because,
        "supersededBy": memory.superseded_by,
        "supersedes": list(memory.supersedes),
        "tags": list(memory.tags),
        "files": list(memory.files),
        "modules": list(memory.modules),
        "scope": memory.scope,
        "visibility": memory.visibility,
        "source": memory.source,
        "createdAt": memory.created_at,
        "createdBy": memory.created_by,
        "updatedAt": memory.updated_at,
        "version": memory.version,
        "sessionId": memory.session_id,
        "sessionIds": list(memory.session_ids),
        "commit": memory.commit,
        "evidence": [evidence_json(each) for each in memory.evidence],
        "workUnit": asdict(unit) if unit is not None else None,
        "methodology": memory.methodology,
        "targetNodeId": memory.target_node_id,
        "impactedNodeIds": list(memory.impacted_node_ids),
        "relations": [
            {
                "type": each.type,
                "memoryId": each.memory_id,
                "path": each.path,
                "confidence": each.confidence,
                "isAuto": each.is_auto,
            }
            for each in memory.relations
        ],
        "halfLifeDays": memory.half_life_days,
        "citation": memory.citation,
        "chunk": None
        if chunk is None
        else {
            "type": chunk.type,
            "firstLine": chunk.first_line,
            "lastLine": chunk.last_line,
            "contextPrefix": chunk.context_prefix,
        },
        "data": dict(memory.data),
        "verifiedUses": memory.verified_uses,
        "corrections": memory.corrections,
        "lastVerifiedUseAt": memory.last_verified_use_at,
        "code": code_json(code),
    }


def evidence_json(evidence: Evidence) -> dict[str, Any]:
    """What a memory rests on; what it does not have is left out."""
    fields = {
        "messageId": evidence.message_id,
        "observationId": evidence.observation_id,
        "path": evidence.path,
        "commit": evidence.commit,
        "firstLine": evidence.first_line,
        "lastLine": evidence.last_line,
        "quote": evidence.quote,
    }
    return {name: value for name, value in fields.items() if value is not None}


def added_json(added: AddResult, code: Freshness | None = None) -> dict[str, Any]:
    """What came of adding a memory; ``code`` is what it names of the code."""
    shown = memory_json(added.memory, None, code) if added.memory is not None else None
    return {
        "outcome": added.outcome,
        "memory": shown,
        "why": list(added.why),
        "similarTo": added.similar_to,
        "superseded": list(added.superseded),
        "disputes": list(added.disputes),
    }


def event_json(event: MemoryEvent) -> dict[str, Any]:
    """One change of a memory."""
    return {
        "id": event.id,
        "kind": event.kind,
        "actor": event.actor,
        "by": event.by,
        "sessionId": event.session_id,
        "at": event.at,
        "before": dict(event.before),
        "after": dict(event.after),
        "isUndone": event.is_undone,
    }


def why_json(why: Any) -> dict[str, Any]:
    """Why a memory is there and what it is worth."""
    return {
        "memory": memory_json(why.memory, why.confidence.value, why.code),
        "sources": [
            {
                "evidence": evidence_json(each.evidence),
                "text": each.text,
                "toldBy": each.told_by,
                "isThere": each.is_there,
                "taint": sorted(each.taint),
            }
            for each in why.sources
        ],
        "trust": {"tier": why.trust.tier, "reasons": list(why.trust.reasons)},
        "confidence": {
            "value": why.confidence.value,
            "steps": [
                {"text": each.text, "factor": each.factor, "value": each.value}
                for each in why.confidence.steps
            ],
        },
        "staleness": {
            "isStale": why.staleness.is_stale,
            "reasons": [{"layer": each.layer, "text": each.text} for each in why.staleness.reasons],
        },
        "injection": {
            "allowed": why.injection.allowed,
            "asInstruction": why.injection.as_instruction,
            "why": why.injection.why,
        },
        "chain": [_mention(each) for each in why.chain],
        "origins": [_mention(each) for each in why.origins],
        "events": [event_json(each) for each in why.events],
    }


def audit_json(audit: Any, measures: Sequence[str]) -> dict[str, Any]:
    """What an audit found."""
    return {
        "total": audit.total,
        "active": audit.active,
        "health": audit.health,
        "byType": dict(audit.by_type),
        **{
            _camel(name): {
                "count": measure.count,
                "share": measure.share,
                "examples": [
                    {"ids": list(each.memory_ids), "text": each.text, "why": each.why}
                    for each in measure.examples
                ],
            }
            for name in measures
            for measure in (getattr(audit, name),)
        },
    }


def trust_json(status: Any) -> dict[str, Any]:
    """How far the memories of a project are trusted."""
    offer = status.offer
    return {
        "level": status.level,
        "name": status.name,
        "meaning": status.meaning,
        "injectAbove": status.inject_above,
        "sessions": status.sessions,
        "confirmedShare": status.confirmed_share,
        "correctionRate": status.correction_rate,
        "nextLevelNeeds": list(status.next_level_needs),
        "offer": None
        if offer is None
        else {"level": offer.level, "why": offer.why, "sessionId": offer.session_id},
    }


def _mention(memory: TypedMemory) -> dict[str, Any]:
    return {
        "id": memory.short_id,
        "uuid": memory.id,
        "content": memory.content,
        "createdAt": memory.created_at,
        "isActive": memory.is_active,
        "deprecatedBecause": memory.deprecated_because,
    }


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(each.title() for each in others)
