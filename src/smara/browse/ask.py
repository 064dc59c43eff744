"""Answer a question from what is remembered, with citations.

A model, if there is one, writes the answer from numbered notes and cites them. Without a model, or
when it fails, the best places are quoted. Either way a citation leads to the record, and
one that leads nowhere is marked as dead.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from smara.browse.models import Citation, Reply
from smara.core import log
from smara.core.escape import neutralize
from smara.core.extract import shorten
from smara.core.prompts import load_prompt
from smara.core.startup.regex import re, regex
from smara.errors import SmaraError

if TYPE_CHECKING:
    from smara.models.caller import Models
    from smara.search.models import Hit

PURPOSE = "ask"
MOST_QUOTED = 5
_PROMPTS = Path(__file__).parent / "prompts"
_NOTE_CHARACTERS = 1_200
_QUESTION_CHARACTERS = 2_000
_OUTPUT_TOKENS = 2_000
_LABEL_CHARACTERS = 60
_MARK = regex(r"\[(\d{1,3})\]")
_BY_NAME = regex(r"\[\^?\s*Memory\s*(?:#(?P<id>[\w-]+))?\s*:\s*(?P<text>[^\]]+)\]")


def quote(question: str, hits: Sequence[Hit], note: str = "") -> Reply:
    """Return the best places as they are, each with its number."""
    best = hits[:MOST_QUOTED]
    lines = [f"{' '.join(hit.snippet.split())} [{no}]" for no, hit in enumerate(best, 1)]
    return Reply(
        question,
        "\n".join(lines),
        "extractive",
        citations=tuple(_citation(hit) for hit in best),
        note=note,
    )


def write(models: Models, question: str, hits: Sequence[Hit], deadline_seconds: float) -> Reply:
    """Have a model write the answer; quote if it cannot.

    Never raises: whatever goes wrong is logged and said in the note.
    """
    from smara.models.chat import ChatRequest
    from smara.observations.request import draw_mark

    shown = neutralize(question[:_QUESTION_CHARACTERS]).strip()
    notes = "\n\n".join(
        f"[{no}] {neutralize(shorten(hit.content, _NOTE_CHARACTERS))}"
        for no, hit in enumerate(hits, 1)
    )
    prompt = load_prompt(_PROMPTS, "answer")
    values = {"mark": draw_mark([shown, notes]), "question": shown, "notes": notes}
    request = ChatRequest(
        prompt.render(values),
        load_prompt(_PROMPTS, "answer_system").text,
        deadline_seconds=deadline_seconds,
        max_output_tokens=_OUTPUT_TOKENS,
    )
    try:
        reply = models.complete(request, purpose=PURPOSE)
    except SmaraError as error:
        log.warning("ask.failed", error=error.code)
        return quote(question, hits, note=str(error))
    if not reply.text.strip():
        return quote(question, hits, note="The model gave no answer.")
    return cited(question, reply.text.strip(), reply.model or "model", hits)


def cited(question: str, text: str, method: str, hits: Sequence[Hit]) -> Reply:
    """Return a model's text with its citations numbered in their order.

    A number that no note has, and a memory named in words that is not among the notes, stay as
    citations that lead nowhere.
    """
    citations: list[Citation] = []
    places: dict[str, int] = {}

    def number(citation: Citation) -> str:
        if citation.id not in places:
            citations.append(citation)
            places[citation.id] = len(citations)
        return f"[{places[citation.id]}]"

    def by_number(match: re.Match[str]) -> str:
        no = int(match[1])
        if 1 <= no <= len(hits):
            return number(_citation(hits[no - 1]))
        return number(Citation(match[0], match[0], is_dead=True))

    def by_name(match: re.Match[str]) -> str:
        name = match["id"] or ""
        hit = next((each for each in hits if name and each.id.startswith(name)), None)
        label = shorten(match["text"].strip(), _LABEL_CHARACTERS)
        return number(_citation(hit) if hit else Citation(name or label, label, is_dead=True))

    # Both forms in one pass: a number that was put in the place of a name is no note's number.
    pieces: list[str] = []
    end = 0
    for found in re.finditer(f"{_BY_NAME.pattern}|(?P<no>{_MARK.pattern})", text):
        pieces += [text[end : found.start()]]
        pieces += [by_number(_MARK.fullmatch(found["no"])) if found["no"] else by_name(found)]  # type: ignore[arg-type]  # the same pattern
        end = found.end()
    return Reply(question, "".join((*pieces, text[end:])), method, citations=tuple(citations))


def _citation(hit: Hit) -> Citation:
    label = shorten(" ".join((hit.title or hit.snippet).split()), _LABEL_CHARACTERS)
    return Citation(hit.id, label, hit.source, hit=hit)
