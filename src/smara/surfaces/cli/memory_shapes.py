"""Memories as JSON: the shapes that every answer about memories is made of. ``id`` is the short
id.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from smara.core.freshness import Freshness
from smara.knowledge.models import Added, Evidence, MemoryEvent, TypedMemory
from smara.surfaces.cli.code_lines import code_json


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


def added_json(added: Added, code: Freshness | None = None) -> dict[str, Any]:
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
