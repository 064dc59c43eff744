"""Let a model choose which of a person's sentences decide something.

The model answers with numbers of sentences, never with words of its own: so nothing that it makes
up can be kept, and nothing that was pasted can be chosen, because it has no number.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from smara.core import log
from smara.core.extract import shorten
from smara.core.prompts import load_prompt
from smara.decisions.utterances import Sentence, SpokenTurn
from smara.errors import SmaraError
from smara.models.chat import ChatRequest, list_schema

if TYPE_CHECKING:
    from smara.behavior.finalize import ModelAccess

_PROMPTS = Path(__file__).parent / "prompts"
_AT_ONCE = 120
"""The sentences of one request; a longer session is asked about in several."""
_MOST_REQUESTS = 4
_AGENTS_WORDS = 500
_MOST_TOKENS = 1_500
_SCHEMA = list_schema(
    {
        "sentences": {"type": "array", "items": {"type": "integer"}},
        "wish": {"type": "boolean"},
        "personal": {"type": "boolean"},
    }
)


class ChosenGroup(NamedTuple):
    """Sentences that settle one thing, by their place in the session."""

    sentences: tuple[int, ...]
    is_wish: bool
    is_personal: bool
    method: str
    """The name and version of the prompt."""


def choose(
    models: ModelAccess, turns: Sequence[SpokenTurn], since: int, spoken: Sequence[Sentence]
) -> list[ChosenGroup] | None:
    """Return what a model takes for decisions.

    Args:
        models: Makes the calls, within the budget.
        turns: The session.
        since: The place in the thread up to which it was asked before; a session that goes on
            costs no more than its new part.
        spoken: The person's sentences in it.

    Returns:
        Groups of sentences; None if the model could not be asked, or its answer was no list.
    """
    from smara.behavior.finalize import read_items  # not needed by those who list decisions

    found: list[ChosenGroup] = []
    new = [number for number, each in enumerate(spoken) if turns[each.turn].seq > since]
    first = max(min(new, default=len(spoken)), len(spoken) - _AT_ONCE * _MOST_REQUESTS)
    prompt = load_prompt(_PROMPTS, "choose")
    for start in range(first, len(spoken), _AT_ONCE):
        numbers = range(start, min(start + _AT_ONCE, len(spoken)))
        text = prompt.render({"talk": _talk(turns, spoken, numbers)})
        request = ChatRequest(text, max_output_tokens=_MOST_TOKENS, schema=_SCHEMA)
        try:
            text = models.complete(request, "decisions").text
        except SmaraError as error:
            log.warning("decisions.not_chosen", error=error.code)
            return None
        if "[" not in text:
            log.warning("decisions.not_chosen", error="no list")
            return None
        for item in read_items(text):
            listed = item.get("sentences")
            numbered = listed if isinstance(listed, list) else []
            chosen = {each for each in numbered if isinstance(each, int) and each in numbers}
            if chosen:
                found.append(
                    ChosenGroup(
                        tuple(sorted(chosen)),
                        is_wish=item.get("wish") is True,
                        is_personal=item.get("personal") is True,
                        method=f"{prompt.name} v{prompt.version}",
                    )
                )
    return found


def _talk(turns: Sequence[SpokenTurn], spoken: Sequence[Sentence], numbers: range) -> str:
    """Render sentences with their numbers, and the agent's words between them."""
    lines: list[str] = []
    last = -1
    for number in numbers:
        turn = spoken[number].turn
        if turn != last:
            lines += [_agents(each) for each in turns[max(0, turn - 1, last + 1) : turn]]
            last = turn
        lines.append(f"[{number}] {spoken[number].text}")
    lines += [_agents(each) for each in turns[last + 1 : last + 2]]
    return "\n".join(line for line in lines if line)


def _agents(turn: SpokenTurn) -> str:
    """Render an agent's turn: its beginning, its end, and that it worked."""
    if turn.speaker != "agent":
        return ""
    words = " ".join(turn.text.split())
    if len(words) > 2 * _AGENTS_WORDS:
        words = f"{shorten(words, _AGENTS_WORDS)} … {words[-_AGENTS_WORDS:]}"
    work = f" (used tools {turn.calls} times)" if turn.calls else ""
    return f"Agent{work}: {words}"
