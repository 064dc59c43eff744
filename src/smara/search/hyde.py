"""Write a hypothetical answer to search by its meaning (HyDE).

A question and its answer may share no word; an invented answer is closer to the real one. It is
only compared with stored vectors, never shown and never stored. It costs a model call.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from smara.core import log
from smara.core.escape import neutralize
from smara.core.prompts import load_prompt
from smara.core.startup.regex import re, regex

if TYPE_CHECKING:
    from smara.models.caller import Models


PURPOSE = "hyde"
_PROMPTS = Path(__file__).parent / "prompts"
_QUERY_CHARACTERS = 2_000
_MOST_CHARACTERS = 800
# Two sentences have 100 tokens at the most; the rest is for models that think before they write.
_OUTPUT_TOKENS = 1_000
_WRAPPED = regex(r"\A(?:```\w*\s*(?P<fenced>.*?)\s*```|[\"“«](?P<quoted>.*)[\"”»])\Z", re.DOTALL)


def hypothetical(models: Models, query: str, deadline_seconds: float) -> str | None:
    """Return two invented sentences that would answer a query, or None.

    Never raises: whatever goes wrong, the budget and the deadline included, is logged, and the
    search goes on with what it has.
    """
    if models.is_offline or not query.strip():
        return None
    try:
        from smara.models.chat import ChatRequest
        from smara.observations.request import draw_mark

        shown = neutralize(query[:_QUERY_CHARACTERS]).strip()
        prompt = load_prompt(_PROMPTS, "hypothetical")
        request = ChatRequest(
            prompt.render({"mark": draw_mark([shown]), "query": shown}),
            load_prompt(_PROMPTS, "hypothetical_system").text,
            deadline_seconds=deadline_seconds,
            max_output_tokens=_OUTPUT_TOKENS,
        )
        reply = models.complete(request, purpose=PURPOSE).text
        found = _WRAPPED.match(reply.strip())
        text = " ".join((found["fenced"] or found["quoted"] or "" if found else reply).split())
        # A reply that repeats the question is no answer.
        if not text or text.casefold() == " ".join(query.split()).casefold():
            log.warning("hyde.failed", error="bad_reply", reason="echo" if text else "empty")
            return None
        if len(text) <= _MOST_CHARACTERS:
            return text
        return text[:_MOST_CHARACTERS].rpartition(" ")[0] or text[:_MOST_CHARACTERS]
    except Exception as error:  # noqa: BLE001 - a search must not fail over what only might have made it better
        log.warning(
            "hyde.failed",
            error=getattr(error, "code", type(error).__name__),
            reason=getattr(error, "facts", {}).get("reason"),
        )
        return None
