"""Calls that are neither files nor commands: the web, other agents, questions to the user, plans,
unknown tools.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from smara.messages.models import plain
from smara.observations.models import Note
from smara.observations.offline import phrases
from smara.observations.offline.agent_speech import is_telling_item, telling_sentences
from smara.observations.offline.drafting import Input, Scene, joined, make_note
from smara.observations.offline.exchanges import Call, output_lines
from smara.observations.offline.telling import REJECTED, failure_in
from smara.observations.offline.wording import clean, clip, excerpt, outline

_ANSWERS = re.compile(r"\"([^\"\n]{1,600})\"=\"([^\"\n]{0,600})\"")
_SAID = re.compile(r"the user said:\s*(\S[^\n]{0,600})", re.IGNORECASE)
_LINK = re.compile(r"https?://[^\s\"'<>)\]}]{4,300}")


def web_note(scene: Scene, calls: Sequence[Call]) -> Note | None:
    """What was looked up on the web; in research mode with what the pages said."""
    queries = [call.argument("query", "q", "search_term") for call in calls]
    pages = [link for call in calls if (link := call.argument("url"))]
    asked, fetched = joined(filter(None, queries), 300), joined(pages, 300)
    if not asked and not fetched:
        return None
    is_research = scene.mode == "research"
    said = [clip(words, 240) for call in calls if (words := _first_finding(call))]
    facts: dict[str, Any] = {}
    if is_research:
        links = [link for call in calls for link in _LINK.findall((call.output or "")[:20_000])]
        facts = {"sources": list(dict.fromkeys([*pages, *links]))[:12]}
    text = f"{phrases.SEARCHED_WEB} {asked}" if asked else ""
    text = "; ".join(filter(None, [text, f"{phrases.FETCHED} {fetched}" if fetched else ""]))
    text = text[:1].upper() + text[1:]
    return make_note(
        scene,
        "medium" if is_research else "low",
        "note",
        text=text,
        at=calls[0].at,
        inputs=["assistant", "web"],
        seqs=[seq for call in calls for seq in (call.seq, call.last_seq)],
        details=said[: 4 if is_research else 1],
        **facts,
    )


def _first_finding(call: Call) -> str:
    """The first sentence of a page that says something; a list of links says nothing yet."""
    if not call.argument("url"):
        return ""
    found = outline(excerpt(call.output or ""))
    return next((words for words in found.prose if len(words) > 40), "")


def agent_note(scene: Scene, call: Call) -> Note:
    """A task given to another agent, and what it reported."""
    task = call.argument("description", "title", "name") or clip(
        call.argument("prompt", "task", "message"), 200
    )
    found = outline(excerpt(call.output or ""))
    prose = telling_sentences([*found.prose, *found.closing])
    details = [f"{phrases.AGENT_FOUND} {joined(prose[:3], 300, ' ')}"] if prose else []
    details += [clip(item, 150) for item in found.items if is_telling_item(item)][:10]
    return make_note(
        scene,
        "medium",
        "finding",
        text=f"{phrases.DELEGATED} {clip(task, 220)}",
        at=call.at,
        seqs=(call.seq, call.last_seq),
        inputs=["assistant", "tool"],
        details=details,
    )


def ask_notes(scene: Scene, call: Call) -> list[Note]:
    """What the user answered to a question asked through a tool; the question alone while it is
    open.
    """
    seqs = (call.seq, call.last_seq)
    answered = _ANSWERS.findall((call.output or "")[:20_000])
    if answered:
        texts = [
            f"{phrases.ANSWERED} {clip(a, 300)} ({phrases.ABOUT} {clip(q, 300)})"
            for q, a in answered[:6]
        ]
        inputs: list[Input] = ["user", "assistant"]
        return [
            make_note(
                scene,
                "high",
                "decision",
                text=text,
                at=call.at,
                seqs=seqs,
                inputs=inputs,
                is_dated=True,
            )
            for text in texts
        ]
    question = call.argument("question", "prompt", "message") or _first_question(call)
    if not question:
        return []
    text = f"{phrases.ASKED_USER} {clip(question, 300)}"
    reply = [clip(call.output, 300)] if call.output else []
    return [
        make_note(
            scene,
            "medium",
            "question",
            text=text,
            at=call.at,
            seqs=seqs,
            inputs=["assistant"],
            details=reply,
        )
    ]


def _first_question(call: Call) -> str:
    questions = call.arguments.get("questions") if isinstance(call.arguments, Mapping) else None
    for question in questions if isinstance(questions, list) else ():
        if isinstance(question, Mapping) and isinstance(question.get("question"), str):
            return clean(str(question["question"]))
    return ""


def plan_note(scene: Scene, call: Call) -> Note | None:
    """A plan that was shown to the user, and whether it was approved."""
    found = outline(excerpt(call.argument("plan", "explanation", "text")))
    words = [*found.items, *found.prose, *found.closing]
    if not words:
        return None
    is_approved = "approved" in (call.output or "")[:200]
    label = f"{phrases.PLANNED} {phrases.APPROVED}:" if is_approved else f"{phrases.PLANNED}:"
    return make_note(
        scene,
        "high" if is_approved else "medium",
        "decision",
        text=f"{label} {clip(words[0], 200)}",
        at=call.at,
        seqs=(call.seq, call.last_seq),
        inputs=["assistant", *(["user"] if is_approved else [])],  # type: ignore[list-item]
        details=[
            clip(item, 140)
            for item in [*found.prose[:2], *filter(is_telling_item, found.items[1:])]
        ][:10],
    )


def was_rejected(call: Call) -> bool:
    """Whether the user refused to let a call run."""
    return REJECTED in (call.output or "")[:400]


def rejection_note(scene: Scene, call: Call, is_quiet: bool) -> Note | None:
    """A call that the user refused, with the words that were said to it; a quiet tool's only when
    there are some.
    """
    said = _SAID.search((call.output or "")[:4_000])
    if is_quiet and not said:
        return None
    what = f"{call.name} {tool_words(scene, call)}".strip()
    text = f"{phrases.REJECTED} {clip(what, 200)}" + (f": {clip(said[1], 400)}" if said else "")
    return make_note(
        scene,
        "high",
        "change" if said else "note",
        text=text,
        at=call.at,
        seqs=(call.seq, call.last_seq),
        inputs=["user", "assistant"],
    )


def tool_note(scene: Scene, calls: Sequence[Call]) -> Note:
    """Calls of tools that are not known otherwise, such as those of an MCP server."""
    told = [f"{call.name}{_arguments(scene, call)}{_result(call)}" for call in calls]
    return make_note(
        scene,
        "medium",
        "command",
        text=f"{phrases.USED} {joined(told, 400)}",
        at=calls[0].at,
        seqs=[seq for call in calls for seq in (call.seq, call.last_seq)],
        inputs=["assistant", "tool"],
    )


def tool_words(scene: Scene, call: Call) -> str:
    """The arguments of a call in one short line."""
    if isinstance(call.arguments, Mapping):
        values = [
            clean(plain(value)[:2_000])
            for value in call.arguments.values()
            if value not in (None, "", False)
        ]
    else:
        values = [] if call.arguments is None else [clean(plain(call.arguments)[:2_000])]
    return clip(scene.paths.shorten(joined(values, 160, ", ")), 160)


def _arguments(scene: Scene, call: Call) -> str:
    words = tool_words(scene, call)
    return f" ({words})" if words else ""


def _result(call: Call) -> str:
    if not call.is_error:
        return ""
    failure = failure_in(output_lines(call, 400))
    return f": {phrases.FAILED}: {failure.line}" if failure else f": {phrases.FAILED}"
