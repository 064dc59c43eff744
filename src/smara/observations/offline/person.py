"""Write notes on what a person says, close to the words.

Neighbouring sentences of one act are grouped into passages; each passage becomes a note.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from smara.actions.failures import failure_in
from smara.observations.models import Category, Note, Priority
from smara.observations.offline.acts import (
    CURE,
    DURABLE,
    Act,
    is_telling,
    is_trouble,
    replaced_by,
    sort,
)
from smara.observations.offline.code import definitions
from smara.observations.offline.exchanges import Exchange, Utterance
from smara.observations.offline.notes import (
    Scene,
    clip,
    outline,
    plain,
    sentences,
)

STRONGEST: tuple[Act, ...] = ("request", "question", "report", "outcome", "statement", "chat")
"""A passage is what its strongest sentence is."""

_LEANS = re.compile(
    r"\b(?:it|its|it's|this|these|those|they|they're|them|their|he|she|him|her)\b"
    r"|^(?:and|but|so|then|because|also|or|otherwise|same|that|that's|the same|the other)\b"
    r"|\bthat[.,;!]{0,2}$",
    re.IGNORECASE,
)
_FEW_WORDS = 3


Pair = tuple[Act, str]
"""A sentence and what is done with it."""


def passages(pairs: Iterable[Pair]) -> dict[Act, list[Pair]]:
    """Group sentences by act.

    A sentence stays with the one that it leans on.
    """
    groups: list[list[Pair]] = []
    for act, words in pairs:
        before = groups[-1] if groups else []
        if act == "question":
            is_leaning = len(words.split()) < _FEW_WORDS
        else:
            is_after_question = any(each == "question" for each, _ in before)
            is_leaning = _leans(words) and not (is_after_question and act == "request")
        if before and is_leaning:
            before.append((act, words))
        else:
            groups.append([(act, words)])
    found: dict[Act, list[Pair]] = {}
    for group in groups:
        acts = {act for act, _ in group}
        found.setdefault(next(act for act in STRONGEST if act in acts), []).extend(group)
    return found


def _leans(words: str) -> bool:
    """Return True if a sentence needs the one before it to be understood."""
    return len(words.split()) < _FEW_WORDS or bool(_LEANS.search(words))


_SHAPES: dict[Act, tuple[str, Category, Priority]] = {
    "request": ("User requested:", "request", "high"),
    "question": ("User asked:", "question", "medium"),
    "statement": ("User said:", "statement", "high"),
    "preference": ("User prefers:", "preference", "high"),
    "decision": ("User decided:", "decision", "high"),
    "change": ("User changed:", "change", "high"),
    "correction": ("User corrected:", "change", "high"),
    "report": ("User reported:", "blocker", "high"),
    "outcome": ("User reported:", "statement", "high"),
    "chat": ("User said:", "note", "low"),
}
_SPEAKER = re.compile(r"([A-Z][\w'-]{1,20}(?: [A-Z][\w'-]{1,20})?): (?=\S)")
_LONGEST_WORDS = 700
_LONGEST_QUESTION = 240
_MOST_DURABLE = 8
_SHORT_ANSWER = 80
_BECAUSE = ("because ", "since ", "so that ", "otherwise ", "it's because ")


def speakers_in(exchanges: Sequence[Exchange]) -> frozenset[str]:
    """Return the speakers that most messages begin with."""
    texts = [each.text for exchange in exchanges for each in exchange.words]
    names = [match[1] for text in texts if (match := _SPEAKER.match(text))]
    return frozenset(names) if len(names) > 1 and len(names) > len(texts) // 2 else frozenset()


class Person:
    """The person who talks, and the trouble mentioned last."""

    def __init__(self, scene: Scene, speakers: frozenset[str]) -> None:
        self._scene = scene
        self._speakers = speakers
        self._trouble: tuple[str, Utterance] | None = None

    def notes(self, exchange: Exchange, question: Utterance | None) -> list[Note]:
        """Write notes on a person's words.

        The agent's last words were the question.
        """
        scene = self._scene
        notes: list[Note] = []
        for words in exchange.words:
            if words.voice == "caller":
                task = outline(words.text)
                notes.append(
                    scene.note(
                        "high",
                        "request",
                        f"Task given to this agent: {clip(' '.join(task.prose), 400)}",
                        [words],
                        inputs=["assistant"],
                        details=[clip(item, 140) for item in task.items[:10]],
                        **scene.mentions(words.text),
                    )
                )
            else:
                notes += self._of_message(words, question)
                question = None
        for file in exchange.attachments:
            text = f"User attached: {file.text}"
            notes.append(scene.note("low", "note", text, [file], inputs=["user"]))
        return notes

    def _of_message(self, message: Utterance, question: Utterance | None) -> list[Note]:
        is_coding, name, text = self._scene.is_coding, "", message.text
        if (match := _SPEAKER.match(text)) and match[1] in self._speakers:
            name, text = match[1], text[match.end() :]
        parts = outline(text)
        pairs: list[Pair] = []
        for words in parts.prose:
            if pairs and pairs[-1][0] in DURABLE and words.lower().startswith(_BECAUSE):
                pairs[-1] = (pairs[-1][0], f"{pairs[-1][1]} {words}")
            else:
                pairs.append((sort(words, is_coding), words))
        acts = {act for act, _ in pairs}
        is_short = len(message.text) <= _SHORT_ANSWER and acts.isdisjoint(("question", "outcome"))
        if question is not None and acts and is_short:
            return [self._answer(message, question, is_request="request" in acts)]
        rest = [pair for pair in pairs if pair[0] not in DURABLE]
        dated: list[Pair] = []
        if is_coding:
            groups = passages(pair for pair in rest if pair[0] != "chat")
        else:
            facts = [
                pair
                for pair in rest
                if pair[0] in ("report", "outcome")
                or (pair[0] == "statement" and is_telling(pair[1]))
            ]
            # Every sentence with a date of its own is an event and stands for itself.
            if len(facts) > 1:
                dated = [pair for pair in facts if self._scene.days_in(pair[1], message.at)]
            wishes = [
                pair
                for pair in rest
                if pair[0] in ("request", "question") and (not name or is_telling(pair[1]))
            ]
            groups = passages(pair for pair in facts if pair not in dated)
            for pair in wishes:
                groups.setdefault(pair[0], []).append(pair)
        lasting = [pair for pair in pairs if pair[0] in DURABLE][:_MOST_DURABLE]
        details = [clip(item, 200) for item in parts.items[:14]]
        for fence in parts.fences[:4]:  # of pasted code and logs the failure, or what is defined
            lines = fence.code.splitlines()
            failure = failure_in(lines)
            defined = [piece.text for piece in definitions(lines, fence.label).all()[:4]]
            details += [clip(failure.line, 220)] if failure else defined or [clip(fence.code, 160)]
        return [
            *(self._sentence_note(message, "statement", words, name=name) for _, words in dated),
            *self._of_passages(message, groups, details=details, name=name),
            *(self._sentence_note(message, act, words, name=name) for act, words in lasting),
        ]

    def _of_passages(
        self, message: Utterance, groups: dict[Act, list[Pair]], details: list[str], name: str
    ) -> Iterator[Note]:
        """Write a note for each passage; lists and pasted code belong to the strongest."""
        if not groups and details:
            yield self._note(message, "statement", "", name=name, details=details)
        holder = min(groups, key=STRONGEST.index, default=None)
        for act, pairs in groups.items():
            about = details if act == holder else []
            words = [words for _, words in pairs]
            if act in ("request", "question") and not self._scene.is_coding:
                text = clip(" ".join(words), _LONGEST_QUESTION)
            else:
                text = _chosen(words, [each in ("request", "report") for each, _ in pairs])
            if act != "outcome":
                yield self._note(message, act, text, name=name, details=about)
                if any(map(is_trouble, words)):
                    self._trouble = (" ".join(words), message)
                continue
            # How something ended is told with the trouble that it put an end to.
            trouble, self._trouble = self._trouble, None
            steps = [message]
            if trouble is not None and any(map(_leans, words)):
                text = f"{text} (trouble: {clip(trouble[0], 200)})"
                steps.append(trouble[1])
            category: Category = "fix" if any(map(CURE.search, words)) else "statement"
            yield self._note(
                message, act, text, name=name, details=about, steps=steps, category=category
            )

    def _answer(self, message: Utterance, question: Utterance, is_request: bool) -> Note:
        words = [each for each in sentences(plain(question.text)) if each.endswith(("?", "？"))]
        about = clip(words[-1], 200) if words else ""
        usual: Category = "decision" if self._scene.is_coding else "statement"
        return self._scene.note(
            "high",
            "request" if is_request else usual,
            f"User answered: {message.text} (asked: {about})",
            [message, question],
            inputs=["user", "assistant"],
            is_dated=True,
        )

    def _sentence_note(self, message: Utterance, act: Act, words: str, name: str) -> Note:
        """Write a note on one sentence, with what it puts an end to."""
        replaced = replaced_by(words) if act in ("change", "preference") else ""
        text = clip(words, 500)
        if replaced:
            text = f"{text} (replaces {clip(replaced, 80)})"
        return self._note(message, act, text, name=name, source=words, replaces=replaced)

    def _note(
        self,
        message: Utterance,
        act: Act,
        text: str,
        *,
        name: str,
        source: str = "",
        steps: Sequence[Utterance] = (),
        category: Category | None = None,
        **facts: Any,
    ) -> Note:
        """Write a note on a person's words; its files are those that the source names."""
        is_coding = self._scene.is_coding
        label, usual, priority = _SHAPES["statement" if act == "report" and not is_coding else act]
        if act == "request" and not is_coding:
            priority = "medium"
        if name and usual in ("request", "question"):
            usual, priority = "note", "low"  # asked of another person, not of the agent
        return self._scene.note(
            priority,
            category or usual,
            f"{f'{name}:' if name else label} {text}".strip(),
            steps or [message],
            inputs=["user"],
            is_dated=True,
            **self._scene.mentions(source or message.text),
            **facts,
        )


def _chosen(words: list[str], is_strong: list[bool]) -> str:
    """Join all sentences if they fit; else the first two, then the strong ones."""
    if sum(map(len, words)) + len(words) <= _LONGEST_WORDS:
        return " ".join(words)
    order = sorted(range(len(words)), key=lambda place: (place > 1, not is_strong[place], place))
    chosen: list[int] = []
    room = _LONGEST_WORDS
    for place in order:
        if len(words[place]) < room:
            chosen.append(place)
            room -= len(words[place]) + 1
    if not chosen:
        return clip(words[0], _LONGEST_WORDS)
    return " ".join(words[place] for place in sorted(chosen)) + " …"
