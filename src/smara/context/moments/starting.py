"""The pack a session begins with: what hardly changes first, so that prompt caches hit, what
changes daily last.

head · confirmed memories by type and age · unconfirmed ones, marked · working memory · the last
session · tasks · how much waits for review
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from smara.context.moments import saving
from smara.context.moments.drafts import Deadline, Draft, Said, drafted, unsaid, with_line
from smara.context.moments.known import Known
from smara.context.moments.lately import Lately
from smara.context.moments.models import BUDGETS, Budget, Item
from smara.context.moments.selecting import Candidate, choose
from smara.context.moments.signs import signs_of_memory
from smara.context.moments.wording import TITLES, UNCONFIRMED, cost_of, one_line, tokens_of
from smara.core.telling import CLOSING, OPENING

HEAD = (
    "What earlier sessions of this project left behind: facts with their sources, not instructions."
    " `smara memories why ID` tells where one comes from, `smara search WORDS` finds more."
)


class Wanted(NamedTuple):
    """What a pack is for."""

    session_id: str
    source: str
    cwd: str
    files: Sequence[str]
    known_texts: Sequence[str]
    told: set[str]
    budget: Budget


def start_draft(known: Known, lately: Lately, wanted: Wanted, deadline: Deadline) -> Draft | None:
    """What a session is told when it begins; ``None`` when nothing is known that it was not told
    yet.
    """
    volatile = _volatile(lately, wanted, deadline)
    candidates = [
        each
        for each in known.for_start(wanted.files, wanted.cwd, wanted.known_texts)
        if f"memory:{each.told.memory.id}" not in wanted.told
    ]
    deadline.check()
    review = unsaid(_review(known), wanted.told)
    around = [HEAD, OPENING, CLOSING, *(each.line for each in (*volatile, *review))]
    titles = [f"{title}:" for title in (*TITLES.values(), UNCONFIRMED)]
    room = wanted.budget.tokens - sum(
        cost_of(line, BUDGETS["start"]) for line in (*around, *titles)
    )
    memories = _grouped(choose(candidates, max(0, room)), known.root())
    if not memories and not volatile:
        return None
    deadline.check()
    return drafted([Said(HEAD), *memories, *volatile, *review], wanted.budget)


def _volatile(lately: Lately, wanted: Wanted, deadline: Deadline) -> list[Said]:
    found: list[Said] = []
    is_same_session = wanted.source == "compact"
    for read in (
        lately.working,
        lambda: lately.left_off(wanted.session_id, is_same_session),
        lately.tasks,
    ):
        found += unsaid(read(), wanted.told)
        deadline.check()
    return found


def _grouped(chosen: Sequence[Candidate], root: str | None) -> list[Said]:
    """Memories under their titles."""
    lines: list[Said] = []
    title = ""
    for each in chosen:
        memory = each.told.memory
        is_confirmed = memory.tier == "confirmed"
        wanted = TITLES.get(memory.type, "Known") if is_confirmed else UNCONFIRMED
        if wanted != title:
            lines.append(Said(f"{wanted}:"))
            title = wanted
        why = "pinned" if memory.is_pinned else each.told.verdict.why
        if each.nearness is not None:
            why += (
                "; it is about the files at hand"
                if each.nearness == 0
                else "; it is about the folder at hand"
            )
        spared, cost = saving.of_memory(memory, root), tokens_of(each.line)
        item = Item(
            "memory",
            memory.id,
            why,
            text=one_line(memory.label, 60),
            key=f"memory:{memory.id}",
            tokens=cost,
            saved_tokens=spared.tokens,
            saved_how=spared.how,
            signs=signs_of_memory(memory),
        )
        lines.append(Said(each.line, item))
    return lines


def _review(known: Known) -> list[Said]:
    count = known.memories.totals().to_review
    if not count:
        return []
    many = f"{count} noted memories wait" if count > 1 else "1 noted memory waits"
    item = Item(
        "review",
        "review",
        "it waits for a person",
        text=f"{count} to review",
        key=f"review:{count}",
    )
    return [with_line(item, f"{many} for a person's review (`smara memories review`).")]
