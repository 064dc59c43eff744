"""Assemble the decisions of a session from both sides' words.

A session is cut into stretches about one thing. Sentences of the person are scored one by one;
a stretch is a decision if one of them is sure, or if the whole talk is one: the person mostly
states, and the agent sums up the person's words. Then even "30 days." belongs to the rule.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

from smara.core.extract import shorten
from smara.core.startup.regex import regex
from smara.core.terms import cjk_run
from smara.decisions.choose import ChosenGroup
from smara.decisions.refusals import (
    RunCommand,
    commands_run,
    refused_commands,
    replaced_programs,
)
from smara.decisions.utterances import (
    Sentence,
    SpokenTurn,
    content_terms,
    count_signs,
    names_in,
    own_text,
    read_utterances,
    sentences,
)

SURE, LIKELY, POSSIBLE = 0.7, 0.5, 0.1
"""A sentence that decides something by itself, one that belongs to it, and one that may."""
HINT = 0.3
"""A statement that is one if it is said in two sessions."""
TALK = 0.5
"""The least mean of a talk that decides something."""
_TALK_CHARACTERS, _MOST_OF_LONG_TALK, _SUMMARY_WEIGHT = 800, 16, 0.5
"""The longest turns of an agent, on average, that talks instead of reporting its work."""
_LEAST_SUMMARY, _LEAST_WORDING, _MOST_ADDED = 0.2, 0.4, 4
"""The least of a person's terms in the agent's words; how many times as many these may have."""
_REPORTS = 0.1
_LEAST_TERMS, _LEAST_WISH, _SHORT = 2, 0.3, 90
_RESTATED, _SHORT_ANSWER = 0.7, 300
_REPEATED, _ECHOED, _MOST_BESIDE, _LONGEST_STANDING = 0.3, 0.5, 3, 500
"""How much of a standing rule, or of words that are taken back, the agent repeats; how many
sentences are kept for each rule; the longest message that is one."""
_MANY_CALLS, _MOST_CALLS = 3, 2
_PAUSE_MS = 6 * 3_600_000
_MOST_TURNS = 40
_MOST_QUOTED, _LONGEST_WORDING = 2_400, 1_600
_MOST_REJECTED = 6
_MOST_HINTS = 6


Weighed = tuple[float, Sentence]


class Quotation(NamedTuple):
    """A sentence of a message, and how likely it decides something."""

    turn: int
    text: str
    weight: float


class Draft(NamedTuple):
    """A decision as a session shows it.

    ``wording`` is how the agent summed it up; ``rejected`` what the agent had proposed when the
    person refused.
    """

    quotations: tuple[Quotation, ...]
    wording: Quotation | None
    rejected: tuple[Quotation, ...]
    about: str
    """All words of the stretch, by which it is found."""
    spoken: str
    """The person's own among them; what an agent names in passing is not what is decided on."""
    score: float
    is_wish: bool
    is_personal: bool
    files: tuple[str, ...]
    """The files that the agent changed in the stretch, or right after it."""
    commands: tuple[str, ...] = ()
    """The commands of the session that it refuses."""
    method: str = ""
    """The prompt by which a model chose it; empty for the weights."""
    is_plan: bool = False
    """Whether it is a plan that a person approved: its title, then its reason."""

    @property
    def rule(self) -> str:
        """The rule in the words of the session."""
        if self.wording is not None:
            return self.wording.text
        if self.is_plan:
            return self.quotations[0].text
        return " ".join(each.text for each in self.quotations)

    @property
    def data(self) -> dict[str, Any]:
        """The data of its memory, beside the rule."""
        if self.is_plan:
            reason = " ".join(each.text for each in self.quotations[1:])
            return {"wording": "plan", "rationale": reason}
        return {
            "wording": "agent" if self.wording is not None else "person",
            "commands": list(self.commands),
            "certainty": round(max(each.weight for each in self.quotations), 2),
        }


@cache
def _weights() -> dict[str, dict[str, float]]:
    text = Path(__file__).with_name("weights.json").read_text("utf-8")
    found: dict[str, dict[str, float]] = json.loads(text)
    return found


def weigh(facts: dict[str, float], kind: Literal["work", "talk", "any"] = "work") -> float:
    """Return the probability that a sentence decides something.

    Where an agent works, a sentence is mostly a request; in a talk, mostly a statement. The first
    message of a talk says what is wrong, as anywhere: it has the table for any sentence.
    """
    weights = _weights()[kind]
    total = weights["start"] + math.fsum(
        weights.get(name, 0.0) * value for name, value in facts.items()
    )
    return 1 / (1 + math.exp(-max(-30.0, min(30.0, total))))


def weigh_session(turns: Sequence[SpokenTurn]) -> list[Weighed]:
    """Return the person's sentences of a session with their weights."""
    return [(weigh(each.facts), each) for each in read_utterances(turns)]


def assemble(
    turns: Sequence[SpokenTurn],
    weighed: Sequence[Weighed],
    choose: Callable[[Sequence[Sentence]], list[ChosenGroup] | None] | None = None,
) -> list[Draft]:
    """Return the decisions of a session, oldest first.

    Args:
        turns: The session.
        weighed: The person's sentences; see `weigh_session`.
        choose: A model's choice among the person's sentences; asked only if one of them may decide
            something. Without it, or if it returns None, the weights decide.
    """
    if choose is not None and any(
        max(weight, weigh(each.facts, "talk")) >= POSSIBLE and not each.facts["question"]
        for weight, each in weighed
    ):
        groups = choose([each for _, each in weighed])
        if groups is not None:
            return [_chosen(turns, weighed, group) for group in groups]
    drafts: list[Draft | None] = []
    for stretch in _stretches(turns, weighed):
        mean = _talk_score(turns, stretch)
        parts = [stretch] if mean >= TALK else _by_turn(turns, stretch)
        drafts += [_draft(turns, part, mean) for part in parts]
    return [draft for draft in drafts if draft is not None]


def hints(
    turns: Sequence[SpokenTurn], weighed: Sequence[Weighed], drafts: Sequence[Draft]
) -> list[Draft]:
    """Return statements that become decisions when they are said a second time."""
    quoted = {each.text for draft in drafts for each in draft.quotations}
    open_facts = ("question", "doubt", "status", "task at once")
    likely = [
        (weight, each)
        for weight, each in weighed
        if weight >= HINT
        and each.text not in quoted
        and not any(each.facts[name] for name in open_facts)
        # "Do not touch the code" bounds one piece of work, however often it is said.
        and (_is_binding(each) or (each.facts["refuse"] and not each.facts["refuses at once"]))
        and len(content_terms(each.text)) >= 2
    ]
    return [
        _compose(
            turns,
            [(weight, each)],
            [Quotation(each.turn, each.text, weight)],
            score=weight,
            is_talk=False,
            # What is said again in another session holds for more than one piece of work.
            is_wish=_is_short_and_general(each.text),
            is_personal=_is_personal(each.text),
        )
        for weight, each in sorted(likely, key=lambda pair: -pair[0])[:_MOST_HINTS]
    ]


def _chosen(turns: Sequence[SpokenTurn], weighed: Sequence[Weighed], group: ChosenGroup) -> Draft:
    """Return the decision that a model chose."""
    stretch = [weighed[number] for number in group.sentences]
    chosen = [Quotation(each.turn, each.text, 1.0) for _, each in stretch]
    draft = _compose(
        turns,
        stretch,
        chosen,
        score=1.0,
        is_talk=not any(turn.calls for turn in turns[chosen[0].turn + 1 : chosen[-1].turn + 1]),
        is_wish=group.is_wish,
        is_personal=group.is_personal,
    )
    return draft._replace(method=group.method)


def _stretches(turns: Sequence[SpokenTurn], weighed: Sequence[Weighed]) -> list[list[Weighed]]:
    """Cut the person's sentences where the work, the time or the subject changes."""
    found: list[list[Weighed]] = []
    last, terms = -1, set[str]()
    for pair in weighed:
        number = pair[1].turn
        if number != last:
            between = turns[last + 1 : number] if last >= 0 else ()
            new = content_terms(turns[number].text[:4_000])
            is_after_work = sum(each.calls for each in between) >= _MANY_CALLS
            is_after_pause = last >= 0 and turns[number].at_ms - turns[last].at_ms > _PAUSE_MS
            is_long = bool(found) and number - found[-1][0][1].turn > _MOST_TURNS
            if last < 0 or is_after_pause or is_long or (is_after_work and len(new & terms) < 2):
                found.append([])
                terms = set()
            terms |= new
            last = number
        found[-1].append(pair)
    return found


def _by_turn(turns: Sequence[SpokenTurn], stretch: Sequence[Weighed]) -> list[list[Weighed]]:
    """Cut sentences where the agent worked between them: each piece of work has its own words."""
    found: list[list[Weighed]] = []
    for pair in stretch:
        last = found[-1][-1][1].turn if found else pair[1].turn
        if not found or any(turn.calls for turn in turns[last + 1 : pair[1].turn]):
            found.append([])
        found[-1].append(pair)
    return found


def _draft(turns: Sequence[SpokenTurn], stretch: Sequence[Weighed], mean: float) -> Draft | None:
    not_meant = ("question", "once", "jest")
    stated = [pair for pair in stretch if not any(pair[1].facts[name] for name in not_meant)]
    if not stated:
        return None
    first = stretch[0][1].turn
    objecting = _objecting_turns(turns, stated)
    lasting = _standing_turns(stated, objecting)
    standing = [each for _, each in stated if each.turn in lasting and not _is_open(each)]
    sure = [
        each
        for weight, each in stated
        if (each.turn in objecting and not _is_open(each))
        or (
            _is_plain(each)
            and (
                weight >= SURE
                or _is_said_plainly(weight, each)
                or _is_restated(turns, each)
                or _is_fact(each)
                or each in standing
            )
        )
    ]
    is_talk = mean >= TALK
    if not (sure or is_talk):
        return None
    around = {each.turn for each in sure}
    chosen = []
    for weight, each in stated:
        least = POSSIBLE if each.turn in around else LIKELY
        if is_talk:
            weight, least = weigh(each.facts, "any"), LIKELY
        in_talk = weigh(each.facts, "talk") if is_talk and each.turn > first else 0.0
        if (
            (weight >= least or in_talk >= POSSIBLE or each in sure)
            and content_terms(each.text)
            and not _is_withdrawn(turns, each, stretch)
        ):
            chosen.append(Quotation(each.turn, each.text, max(weight, in_talk)))
    # Two short replies between pieces of work steer it.
    is_work = is_talk and sum(turn.calls for turn in turns) > _MOST_CALLS * len(turns) / 2
    if len(chosen) < 2 + is_work and not (chosen and sure):
        return None
    quoted = {each.text for each in chosen}
    standing = [each for each in standing if each.text in quoted]
    best = max(stated, key=lambda pair: pair[0])[1]
    is_general = best in sure and _is_wish(best, chosen)
    return _compose(
        turns,
        stretch,
        chosen,
        score=mean if is_talk else max(SURE, *(weight for weight, each in stated if each in sure)),
        is_talk=is_talk,
        is_wish=is_general or (bool(standing) and len(chosen) <= _MOST_BESIDE * len(standing)),
        is_personal=_is_personal(standing[0].text if standing else best.text),
    )


def _compose(
    turns: Sequence[SpokenTurn],
    stretch: Sequence[Weighed],
    chosen: list[Quotation],
    *,
    score: float,
    is_talk: bool,
    is_wish: bool,
    is_personal: bool,
) -> Draft:
    """Put a decision together: quotations, wording, what was rejected, and the files."""
    first, last = stretch[0][1].turn, stretch[-1][1].turn
    chosen = list({each.text: each for each in reversed(chosen)}.values())[::-1]
    while sum(len(each.text) for each in chosen) > _MOST_QUOTED and len(chosen) > 1:
        chosen.remove(min(chosen, key=lambda each: each.weight))
    wording = _summary(turns, chosen) if is_talk else None
    return Draft(
        tuple(chosen),
        wording or _taken_up(turns, chosen),
        tuple(_rejected(turns, stretch) if is_talk else ())[:_MOST_REJECTED],
        "\n".join(_words(turn) for turn in turns[first : last + 2]),
        "\n".join(_words(turn) for turn in turns[first : last + 1] if turn.speaker == "person"),
        score,
        is_wish=is_wish,
        is_personal=is_personal,
        files=tuple(dict.fromkeys(path for turn in turns[first : last + 2] for path in turn.files)),
        commands=_refused(turns, chosen),
    )


def _refused(turns: Sequence[SpokenTurn], chosen: Sequence[Quotation]) -> tuple[str, ...]:
    """Return the commands of a session that quotations refuse."""
    refused: dict[str, None] = {}
    run = commands_run([line for turn in turns for line in turn.commands])
    for number in dict.fromkeys(each.turn for each in chosen) if run else ():
        texts = [each.text for each in chosen if each.turn == number]
        found = _refused_in(turns, number, texts, run)
        refused |= dict.fromkeys(" ".join(words) for words in found)
    return tuple(refused)


def _refused_in(
    turns: Sequence[SpokenTurn], number: int, texts: Sequence[str], run: Sequence[RunCommand]
) -> list[tuple[str, ...]]:
    """Return the commands that texts of a turn refuse, among some that were run."""
    later = [line for turn in turns[number + 1 :] for line in turn.commands]
    found = [words for text in texts for words in refused_commands(text, run, later)]
    if found or not 0 < number < len(turns) - 1:
        return found
    before, after = (commands_run(turns[each].commands) for each in (number - 1, number + 1))
    return replaced_programs(" ".join(texts), before, after)


def _is_plain(sentence: Sentence) -> bool:
    """Return True for a statement without a doubt that says something by itself."""
    return not sentence.facts["doubt"] and len(content_terms(sentence.text)) >= _LEAST_TERMS


def _is_binding(sentence: Sentence) -> bool:
    """Return True for a statement that says what must be, always or from now on."""
    facts = sentence.facts
    is_open = facts["doubt"] or facts["ask"] or facts["task at once"]
    return bool((facts["oblige"] or facts["total"] or facts["lasting"]) and not is_open)


def _is_said_plainly(weight: float, sentence: Sentence) -> bool:
    """Return True for a wish in plain words.

    "Never mock the database", "From now on …", "Use pnpm, not npm", "Answer in French".
    """
    facts = sentence.facts
    is_short = len(sentence.text) <= _SHORT
    is_choice = facts["choice at once"] and facts["refuse"] and not facts["status"]
    is_wish = weight >= _LEAST_WISH and bool(facts["ever at once"] or facts["henceforth"])
    return is_wish or bool(is_short and (facts["manner at once"] or is_choice))


def _is_fact(sentence: Sentence) -> bool:
    """Return True for what a person measured, or asks to remember: "measured: 40 per minute"."""
    facts = sentence.facts
    if any(facts[name] for name in ("question", "doubt", "ask", "task at once")):
        return False
    return bool(facts["note at once"] or (facts["measure"] and facts["quantities"]))


def _objecting_turns(turns: Sequence[SpokenTurn], stated: Sequence[Weighed]) -> set[int]:
    """Return the turns of a person that refuse a command which the agent has just run.

    "Ugh. Not pip." after ``pip install``; "don't push yet" only puts it off.
    """
    found = set()
    for number in {each.turn for _, each in stated}:
        before = turns[number - 1].commands if number else ()
        spoken = [each for _, each in stated if each.turn == number]
        if not before or sum(len(each.text) for each in spoken) > _LONGEST_STANDING:
            continue
        plain = [each.text for each in spoken if not (_is_open(each) or each.facts["yet"])]
        if plain and _refused_in(turns, number, plain, commands_run(before)):
            found.add(number)
    return found


def _standing_turns(stated: Sequence[Weighed], objecting: Collection[int] = ()) -> set[int]:
    """Return the turns of a person that say how work is done every time.

    "Three sentences, no headings. Every time." is one rule in two sentences; "it fails every time"
    is none. Who objects to a command and says that it holds here has said a rule.
    """
    found = set()
    for number in {each.turn for _, each in stated}:
        spoken = [each for _, each in stated if each.turn == number]
        plain = [each for each in spoken if not _is_open(each)]
        if sum(len(each.text) for each in spoken) > _LONGEST_STANDING:
            continue
        is_objection = number in objecting and any(
            each.facts[name] for each in plain for name in ("here", "each", "ever", "henceforth")
        )
        if (
            is_objection
            or any(map(_is_standing, plain))
            or (
                any(each.facts["each"] for each in plain)
                and any(each.facts["refuse"] or each.facts["oblige"] for each in plain)
            )
        ):
            found.add(number)
    return found


def _is_open(sentence: Sentence) -> bool:
    """Return True for what is asked, doubted, reported, or meant for one time."""
    names = ("question", "doubt", "status", "report", "ask", "once")
    return any(sentence.facts[name] for name in names)


def _is_standing(sentence: Sentence) -> bool:
    """Return True for a rule that is said to hold for all work here.

    "You never run migrations here", "this project always uses pnpm", or "we never squash", which
    the agent repeats. "It never works here" tells how things are.
    """
    facts = sentence.facts
    if _is_open(sentence):
        return False
    is_rule = facts["rule"]
    if cjk_run().search(sentence.text):  # where in the sentence it stands tells nothing
        is_rule = facts["here"] and (facts["ever"] or facts["oblige"] or facts["total"])
    is_repeated = facts["agreed"] and facts["echo"] >= _REPEATED
    return bool(is_rule and (facts["here"] or is_repeated))


def _is_restated(turns: Sequence[SpokenTurn], sentence: Sentence) -> bool:
    """Return True if the agent agrees, repeats the statement and does nothing else.

    "Percent first, always." is answered by "Got it: percent before fixed."
    """
    facts, answer = sentence.facts, turns[sentence.turn + 1 : sentence.turn + 2]
    is_request = facts["task at once"] or facts["ask"] or facts["report"]
    return bool(
        facts["agreed"]
        and facts["echo"] >= _RESTATED
        and not is_request
        and answer
        and not answer[0].calls
        and len(answer[0].text) <= _SHORT_ANSWER
    )


def _is_withdrawn(
    turns: Sequence[SpokenTurn], sentence: Sentence, stretch: Sequence[Weighed]
) -> bool:
    """Return True if the agent repeats a statement, asks nothing, and the person says no to it."""
    answer = turns[sentence.turn + 1 : sentence.turn + 2]
    is_echoed = max(sentence.facts["echo"], sentence.facts["taken up"]) >= _ECHOED
    if not is_echoed or not answer or answer[0].text.rstrip()[-1:] in "?？":
        return False
    after = next((each for _, each in stretch if each.turn > sentence.turn), None)
    return after is not None and bool(after.facts["refuses at once"])


def _words(turn: SpokenTurn) -> str:
    return own_text(turn.text) if turn.speaker == "person" else turn.text[:6_000]


def _talk_score(turns: Sequence[SpokenTurn], stretch: Sequence[Weighed]) -> float:
    """Return how likely a talk as a whole decides something; 0 if much work is done in it.

    The mean of the person's sentences says it, and whether the agent sums them up. Where the
    agent's turns are long, they may be reports of work: the weights for work count as much, and
    more is asked.
    """
    stated = [pair for pair in stretch if not pair[1].facts["question"]]
    replies = [(weigh(each.facts, "talk"), each) for _, each in stated if not each.facts["first"]]
    if len(replies) < 2:
        return 0.0
    first, last = stated[0][1].turn, stated[-1][1].turn
    answers = [turn for turn in turns[first : last + 2] if turn.speaker == "agent"]
    calls = sum(turn.calls for turn in answers)
    # Where a host does not say which tools were called, code in nearly all answers shows the work.
    if 4 * sum("```" in turn.text for turn in answers) >= 3 * len(answers):
        return 0.0
    weights = [weight for weight, _ in replies]
    if sum(len(turn.text) for turn in answers) > _TALK_CHARACTERS * len(answers):
        if calls or last - first > _MOST_OF_LONG_TALK:
            return 0.0
        working = [weigh(each.facts, "any") for _, each in stated if not each.facts["first"]]
        weights = [
            (each + other) / 2 - _REPORTS for each, other in zip(weights, working, strict=True)
        ]
    elif calls > _MOST_CALLS * len(answers):
        return 0.0
    summary = _summary(turns, [Quotation(each.turn, each.text, 0.0) for _, each in replies])
    coverage = summary.weight if summary is not None else 0.0
    return math.fsum(weights) / len(weights) + _SUMMARY_WEIGHT * coverage


def _summary(turns: Sequence[SpokenTurn], chosen: Sequence[Quotation]) -> Quotation | None:
    """Return the agent's turn that sums up most of what the person said, if one does."""
    spoken = content_terms(" ".join(each.text for each in chosen))
    first, last = chosen[0].turn, chosen[-1].turn
    best = Quotation(-1, "", _LEAST_SUMMARY)
    for number in range(first + 1, min(last + 2, len(turns))):
        if turns[number].speaker != "agent":
            continue
        listed = sentences(own_text(turns[number].text))
        text = " ".join(each for each in listed if not each.endswith(("?", "？")))
        terms = content_terms(text)
        share = len(terms & spoken) / max(6, len(spoken))
        is_report = len(terms) > _MOST_ADDED * max(6, len(spoken))
        # Of two that say as much, the later one knows more.
        if text and not is_report and share >= best.weight - 0.02:
            best = Quotation(number, shorten(text, _LONGEST_WORDING), share)
    return best if best.turn >= 0 else None


def _taken_up(turns: Sequence[SpokenTurn], chosen: Sequence[Quotation]) -> Quotation | None:
    """Return the agent's next sentence that repeats what the person decided, if one does."""
    number = chosen[-1].turn + 1
    if number >= len(turns) or turns[number].speaker != "agent" or turns[number].calls:
        return None
    spoken = content_terms(" ".join(each.text for each in chosen))
    best = None
    for each in sentences(own_text(turns[number].text))[:12]:
        terms = content_terms(each)
        share = len(terms & spoken) / max(4, len(spoken))
        if not each.endswith(("?", "？", ":")) and share > (
            best.weight if best else _LEAST_WORDING
        ):
            best = Quotation(number, shorten(each, 400), share)
    return best


def _rejected(turns: Sequence[SpokenTurn], stretch: Sequence[Weighed]) -> list[Quotation]:
    """Return what the agent had proposed where the person's answer begins with a refusal."""
    found = []
    for number in dict.fromkeys(each.turn for _, each in stretch):
        before = turns[number - 1] if number else None
        listed = [each for _, each in stretch if each.turn == number]
        if before is None or before.speaker != "agent" or not listed[0].facts["refuses at once"]:
            continue
        if before.calls or len(before.text) > _TALK_CHARACTERS:
            continue  # it reports what it did, in words of the person's wish
        spoken = content_terms(turns[number].text)
        offers = [
            each
            for each in sentences(own_text(before.text))
            # "What is the most?" offers nothing; "Two days?" does.
            if len(content_terms(each)) > 2
            and (
                count_signs(each, "offer")
                or (each.endswith(("?", "？")) and not count_signs(each, "ask"))
            )
        ]
        if offers:
            best = max(offers, key=lambda each: len(content_terms(each) & spoken))
            found.append(Quotation(number - 1, shorten(best, 240), 0.0))
    return found


_CODE_NAME = regex(r"[\w-]+\.\w{1,5}\b|\w+_\w+|\w+\(\)|`")


def _is_wish(best: Sentence, chosen: Sequence[Quotation]) -> bool:
    """Return True for a rule for all of the work, not for one thing in the code."""
    facts = best.facts
    names = ("ever at once", "henceforth", "lasting", "manner at once")
    is_general = any(facts[name] for name in names)
    return bool(is_general and len(chosen) == 1 and _is_short_and_general(best.text))


def _is_short_and_general(text: str) -> bool:
    """Return True for a short statement that names nothing in the code."""
    names = names_in([text]) or _CODE_NAME.search(text)
    return not names and len(content_terms(text)) <= 9


def _is_personal(text: str) -> bool:
    """Return True for a taste: what I want, or how the agent shall talk to me."""
    is_taste = count_signs(text, "self") and count_signs(text, "want")
    return bool(is_taste or count_signs(text, "manner"))
