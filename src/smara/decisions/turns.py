"""Read a session's messages as turns of a person and an agent.

Words of programs and of other agents are left out. An answer that a person gave in a form of the
host arrives as the result of a tool; it is the person's word all the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import starmap

from smara.core.startup.regex import re, regex
from smara.decisions.utterances import SpokenTurn, content_terms
from smara.messages.models import Message
from smara.observations.models import taint_of
from smara.observations.offline.exchanges import (
    ToolCall,
    Utterance,
    form_answers,
    kind_of,
    path_of,
    read,
)

_FORMS = frozenset({"AskUserQuestion", "question"})
"""The tools by which hosts let an agent ask a person."""
_PLAN_FORMS = frozenset({"ExitPlanMode", "exit_plan_mode"})
_APPROVED = "User has approved"
"""The tools by which hosts let a person approve a plan, and how the answer begins."""
_PLAN_PROMPT = regex(
    r"\s*(?:[^\n]{0,200}[.!?][ \t]+)?implement the (?:following )?plan\b[^\n]{0,400}\n", re.I
)
"""The first line of a message by which hosts have an approved plan carried out. The order begins a
sentence: "do not implement the plan yet" is none.
"""
_PROPOSED = regex(r"<proposed_plan>(.*?)</proposed_plan>", re.DOTALL)
_PLAN_ORDER = regex(r"\s*implement the plan\b[^\n]{0,200}\s*\Z", re.I)
"""A message that approves the plan that the agent has just proposed."""
_MOST_OF_A_CHOICE = 8
_ENDS = regex(r"[.!?？。](?=\s|$)")


def turns_of(messages: Sequence[Message]) -> list[SpokenTurn]:
    """Return the turns of a session.

    Words of programs and of other agents are left out.
    """
    ids = {message.seq: message.id for message in messages}
    outside = {
        message.seq for message in messages if message.role == "user" and taint_of([message])
    }
    turns: list[SpokenTurn] = []
    for exchange in read(messages)[0]:
        words = [
            each for each in exchange.words if each.voice == "user" and each.seq not in outside
        ]
        if words:
            text = "\n".join(each.text for each in words)
            first = words[0]
            plan = _planned(text, turns[-1].text if turns else "")
            turns.append(
                SpokenTurn(
                    "person", text, ids.get(first.seq, ""), first.at, seq=first.seq, plan=plan
                )
            )
        steps: list[Utterance | ToolCall] = []
        for step in exchange.steps:
            answers = answered(step) if isinstance(step, ToolCall) else []
            plan = approved(step) if isinstance(step, ToolCall) else ""
            if plan:
                turns.append(_agents_turn([*steps, step], ids))
                steps = []
                turns.append(
                    SpokenTurn(
                        "person", "", ids.get(step.last_seq, ""), step.at, seq=step.seq, plan=plan
                    )
                )
            elif answers and isinstance(step, ToolCall):
                turns.append(
                    _agents_turn(steps, ids, "\n".join(question for question, _ in answers))
                )
                steps = []
                seq, text = step.last_seq, "\n".join(starmap(_answer, answers)).strip()
                if text:
                    turns.append(
                        SpokenTurn("person", text, ids.get(seq, ""), step.at, seq=seq, is_form=True)
                    )
            else:
                steps.append(step)
        if any(isinstance(each, ToolCall) or each.voice == "assistant" for each in steps):
            turns.append(_agents_turn(steps, ids))
    return turns


def _agents_turn(
    steps: Sequence[Utterance | ToolCall], ids: Mapping[int, str], question: str = ""
) -> SpokenTurn:
    """Return what an agent said and did, and what it asked at the end."""
    used = [each for each in steps if isinstance(each, ToolCall)]
    files = dict.fromkeys(path_of(each) for each in used if kind_of(each) == "change")
    answers = [each for each in steps if isinstance(each, Utterance) and each.voice == "assistant"]
    last = answers[-1] if answers else steps[-1] if steps else None
    return SpokenTurn(
        "agent",
        "\n".join(filter(None, (*(each.text for each in answers), question))),
        ids.get(last.seq, "") if last is not None else "",
        last.at if last is not None else 0,
        calls=len(used),
        files=tuple(filter(None, files)),
        commands=tuple(
            each.argument("command", "cmd", "script") for each in used if kind_of(each) == "command"
        ),
    )


def _planned(text: str, before: str) -> str:
    """Return the plan that a person's message has carried out, if any.

    A plan that is only shown, as for a review, is not approved.
    """
    if match := _PLAN_PROMPT.match(text):
        return text[match.end() :]
    proposed = _PROPOSED.findall(before) if _PLAN_ORDER.match(text) else []
    return proposed[-1] if proposed else ""


def approved(call: ToolCall) -> str:
    """Return the plan that a person approved by a form."""
    if call.name not in _PLAN_FORMS or not (call.output or "").startswith(_APPROVED):
        return ""
    return call.argument("plan") or (call.output or "").partition("## Approved Plan")[2]


def _answer(question: str, answer: str) -> str:
    """Render an answer with its question; "You decide" is none."""
    terms = content_terms(answer)
    if len(terms) > _MOST_OF_A_CHOICE or not terms:
        return answer if terms else ""
    return f"{answer.rstrip(' .')} (asked: {_ENDS.sub(',', question.rstrip(' .?？'))})"


def answered(call: ToolCall) -> list[tuple[str, str]]:
    """Return the questions of a form with the person's answers.

    Only the host's own tool counts: what another program returns is not the person's word.
    """
    if call.name not in _FORMS or not isinstance(call.arguments, Mapping) or not call.output:
        return []
    given = call.arguments.get("questions")
    questions = {
        each["question"]
        for each in (given if isinstance(given, list) else [])
        if isinstance(each, Mapping) and isinstance(each.get("question"), str)
    }
    return [pair for pair in form_answers(call) if pair[0] in questions and pair[1]]
