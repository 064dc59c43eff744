"""Read what waits for a person, and what accepting it would change.

A review is cheap: the evidence stands beside the statement, the effect on the next session is shown
in tokens before anything is accepted, and the last act can be undone. What many rows at once would
do is the engine's to say: it leaves out what is tainted, disputed or flagged.
"""

from __future__ import annotations

from difflib import ndiff
from typing import Any

from smara.knowledge.models import TypedMemory
from smara.memory import Memory
from smara.surfaces.http.shape import Shaper, tag_of
from smara.surfaces.panel.page import Facts, PageSpec, Query, number

FORMS = {1: "each", 2: "together", 3: "toReview", 4: "none"}
"""How the end of a session is shown at each level of trust."""
MOST_TOGETHER = 100
_CARDS = 25
"""A card with its evidence and forms has two kilobytes."""
_MOST_SIMULATED = 25


def review(memory: Memory, query: Query) -> Facts:
    """Read the memories that wait for a person."""
    offset = number(query, "offset")
    page = memory.memories.to_review(limit=_CARDS, offset=offset)
    last = memory.memories.find(query["done"]) if query.get("done") else None
    return {
        "memories": tagged(memory, page.memories),
        "total": memory.memories.totals().to_review,
        "offset": offset,
        "rows": _CARDS,
        "next": page.next_offset,
        "done": None if last is None else tagged(memory, [last])[0],
    }


def waiting(memory: Memory, query: Query) -> Facts:
    """Read one memory of the review, and what accepting it would change."""
    record = memory.memories.get(query["id"])
    return {
        "memory": tagged(memory, [record])[0],
        "why": Shaper(memory).shape(memory.memories.why(record.id)),
        "effect": effect(memory, [record.id]),
    }


def impact(memory: Memory, query: Query) -> Facts:
    """Read what accepting many memories would change; without a choice all."""
    chosen = [each for each in query.get("id", "").split(",") if each]
    session_id = query.get("session") or None
    plan = memory.memories.accept_all(
        memory_ids=chosen or None, session_id=session_id, dry_run=True, limit=MOST_TOGETHER
    )
    filters = {"needs_review": "yes"} | ({"session": session_id} if session_id else {})
    waiting = len(chosen) or memory.browse.facets("memories", filters).total
    together, left = plan.accepted, plan.left[:_CARDS]
    ids = [each.id for each in together]
    return {
        "accepted": tagged(memory, together[:_CARDS]),
        "ids": ids,
        "more": max(0, waiting - len(plan.accepted) - len(plan.left)),
        "left": [
            {**shaped, "because": why}
            for shaped, (_, why) in zip(
                tagged(memory, [each for each, _ in left]), left, strict=True
            )
        ],
        "effect": effect(memory, ids[-_MOST_SIMULATED:]),
        "isPart": len(ids) > _MOST_SIMULATED,
        "session": session_id,
        "back": f"/ui/review/session/{session_id}" if session_id else "/ui/review",
    }


def session_end(memory: Memory, query: Query) -> Facts:
    """Read what a session learned, as its level of trust shows it."""
    thread = memory.threads.find(query["id"])
    trust = memory.memories.trust()
    form = FORMS[trust.level]
    only: dict[str, Any] = {"needs_review": True} if form == "toReview" else {}
    learned = memory.memories.list(session_id=query["id"], state="all", limit=_CARDS, **only)
    receipts = memory.moments.receipts(session_id=query["id"])
    shape = Shaper(memory).shape
    return {
        "sessionId": query["id"],
        "thread": shape(thread),
        "trust": shape(trust),
        "form": form,
        "isShown": form != "none" or bool(query.get("all")),
        "told": [item for receipt in shape(receipts) for item in receipt["items"]],
        "savedTokens": sum(each.saved_tokens for each in receipts),
        "learned": tagged(memory, learned.memories),
    }


def effect(memory: Memory, ids: list[str]) -> Facts:
    """Compare the next start with the one after some memories were accepted."""
    now, then = memory.moments.preview(), memory.moments.preview(accepted=ids)
    lines = ndiff(now.text.splitlines(), then.text.splitlines())
    return {
        "tokens": then.tokens - now.tokens,
        "before": now.tokens,
        "after": then.tokens,
        "lines": [line for line in lines if line[0] in "+-"],
    }


def tagged(memory: Memory, records: Any) -> list[Facts]:
    """Return memories with the versions that a form sends back."""
    every: list[TypedMemory] = list(records)
    shapes = Shaper(memory).shape(every)
    return [
        {**shaped, "etag": tag_of(record)} for shaped, record in zip(shapes, every, strict=True)
    ]


INBOX: tuple[PageSpec, ...] = (
    PageSpec("/review", "review.html", review, "Review", key="r"),
    PageSpec("/review/impact", "impact.html", impact, "Accept together"),
    PageSpec("/review/session/{id:path}", "session_end.html", session_end, "End of a session"),
    PageSpec("/review/{id}", "waiting.html", waiting, "Waiting"),
)
