"""Write notes on what a person says, close to the words.

Neighbouring sentences of one act are grouped into passages; each passage becomes a note.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from smara.observations.models import Category, Note, Priority
from smara.observations.offline import phrases
from smara.observations.offline.acts import (
    DURABLE,
    Act,
    is_telling,
    is_trouble,
    names_a_cure,
    replaced_by,
    sort,
)
from smara.observations.offline.code import definitions
from smara.observations.offline.exchanges import Exchange, Utterance
from smara.observations.offline.notes import (
    Scene,
    TextOutline,
    clean,
    clip,
    make_note,
    mentioned,
    outline,
    plain,
    refers_to,
    sentences,
)
from smara.observations.offline.output import failure_in

STRONGEST: tuple[Act, ...] = ("request", "question", "report", "outcome", "statement", "chat")
"""A passage is what its strongest sentence is."""

_LEANS = re.compile(
    r"\b(?:it|its|it's|this|these|those|they|they're|them|their|he|she|him|her)\b"
    r"|^(?:and|but|so|then|because|also|or|otherwise|same|that|that's|the same|the other)\b"
    r"|\bthat[.,;!]{0,2}$",
    re.IGNORECASE,
)
_FEW_WORDS = 3


@dataclass(slots=True)
class Passage:
    """Sentences with one act, in the order in which they were said."""

    act: Act
    sentences: list[tuple[Act, str]] = field(default_factory=list)

    @property
    def words(self) -> list[str]:
        return [words for _, words in self.sentences]


def passages(sentences: Iterable[tuple[Act, str]]) -> list[Passage]:
    """The passages of a message, one for each act, in the order in which they begin."""
    found: dict[Act, Passage] = {}
    for group in _groups(sentences):
        act = next(each for each in STRONGEST if each in {act for act, _ in group})
        found.setdefault(act, Passage(act)).sentences.extend(group)
    return list(found.values())


def leans(words: str) -> bool:
    """Whether a sentence needs the one before it to be understood."""
    return len(words.split()) < _FEW_WORDS or bool(_LEANS.search(words))


def _groups(sentences: Iterable[tuple[Act, str]]) -> list[list[tuple[Act, str]]]:
    """Each sentence with those that lean on it."""
    groups: list[list[tuple[Act, str]]] = []
    for act, words in sentences:
        if groups and _stays(groups[-1], act, words):
            groups[-1].append((act, words))
        else:
            groups.append([(act, words)])
    return groups


def _stays(before: Sequence[tuple[Act, str]], act: Act, words: str) -> bool:
    if act == "question":
        return len(words.split()) < _FEW_WORDS
    is_after_question = any(each == "question" for each, _ in before)
    return leans(words) and not (is_after_question and act == "request")


_SHAPES: dict[Act, tuple[str, Category, Priority]] = {
    "request": (phrases.REQUESTED, "request", "high"),
    "question": (phrases.ASKED, "question", "medium"),
    "statement": (phrases.STATED, "statement", "high"),
    "preference": (phrases.PREFERS, "preference", "high"),
    "decision": (phrases.DECIDED, "decision", "high"),
    "change": (phrases.CHANGED, "change", "high"),
    "correction": (phrases.CORRECTED, "change", "high"),
    "report": (phrases.REPORTED, "blocker", "high"),
    "outcome": (phrases.REPORTED, "statement", "high"),
    "chat": (phrases.STATED, "note", "low"),
}
_SPEAKER = re.compile(r"([A-Z][\w'-]{1,20}(?: [A-Z][\w'-]{1,20})?): (?=\S)")
_LONGEST_WORDS = 700
_LONGEST_QUESTION = 240
_MOST_DURABLE = 8
_SHORT_ANSWER = 80
_BECAUSE = ("because ", "since ", "so that ", "otherwise ", "it's because ")

Pair = tuple[Act, str]


def speakers_in(exchanges: Sequence[Exchange]) -> frozenset[str]:
    """The names before a colon with which most messages begin: a conversation between named
    people.
    """
    said = [each for exchange in exchanges for each in exchange.said]
    heads = [match[1] for each in said if (match := _SPEAKER.match(each.text))]
    return frozenset(heads) if len(heads) > 1 and len(heads) > len(said) // 2 else frozenset()


class Person:
    """Who talks with the agent; remembers the trouble that was told last, until it is over."""

    def __init__(self, scene: Scene, speakers: frozenset[str]) -> None:
        self._scene = scene
        self._speakers = speakers
        self._trouble: tuple[str, int] | None = None

    def notes(self, exchange: Exchange, asked: Utterance | None) -> list[Note]:
        """The notes on what was said in an exchange. ``asked`` is the question that the agent had
        ended with.
        """
        scene = self._scene
        notes: list[Note] = []
        for said in exchange.said:
            if said.voice == "caller":
                notes.append(_given_task(scene, said))
            else:
                notes += self._of_message(said, asked)
                asked = None
        for part, seq, at in exchange.placeholders:
            label = part.name or part.uri or part.media_type or part.type
            text = f"{phrases.ATTACHED} {part.type} {clip(clean(f'{label} {part.text}'), 200)}"
            notes.append(
                make_note(scene, "low", "note", text=text, at=at, seqs=[seq], inputs=["user"])
            )
        return notes

    def _of_message(self, said: Utterance, asked: Utterance | None) -> list[Note]:
        scene, name, text = self._scene, "", said.text
        if (match := _SPEAKER.match(text)) and match[1] in self._speakers:
            name, text = match[1], text[match.end() :]
        found = outline(text)
        sentences_said = _sorted(scene, [*found.prose, *found.closing])
        if (
            asked is not None
            and len(said.text) <= _SHORT_ANSWER
            and _is_short_answer(sentences_said)
        ):
            is_request = any(act == "request" for act, _ in sentences_said)
            return [
                _answer(
                    scene,
                    said,
                    asked,
                    category="request"
                    if is_request
                    else "decision"
                    if scene.is_coding
                    else "statement",
                )
            ]
        durable = [pair for pair in sentences_said if pair[0] in DURABLE]
        notes = [
            _sentence_note(scene, said, act, words=words, name=name)
            for act, words in durable[:_MOST_DURABLE]
        ]
        rest = [(act, words) for act, words in sentences_said if act not in DURABLE]
        gather = self._rest_notes if scene.is_coding else self._talk_notes
        return [*gather(said, rest, found, name), *notes]

    def _rest_notes(
        self, said: Utterance, rest: Sequence[Pair], found: TextOutline, name: str
    ) -> list[Note]:
        """What is left of a message about work: what is requested, asked, reported and told, each
        as one note.
        """
        told = passages(pair for pair in rest if pair[0] != "chat")
        return self._of_passages(said, told, [*_shown_items(found), *_fenced(found)], name=name)

    def _talk_notes(
        self, said: Utterance, rest: Sequence[Pair], found: TextOutline, name: str
    ) -> list[Note]:
        """What is left of a message about life: what was told, what was asked; small talk is
        dropped.

        Every sentence with a date of its own is an event and stands for itself.
        """
        told = [(act, words) for act, words in rest if _is_told(act, words)]
        dated = (
            [pair for pair in told if refers_to(self._scene, pair[1], said.at)]
            if len(told) > 1
            else []
        )
        notes = [
            _sentence_note(self._scene, said, "statement", words=words, name=name)
            for _, words in dated
        ]
        asked = [
            pair
            for pair in rest
            if pair[0] in ("request", "question") and (not name or is_telling(pair[1]))
        ]
        told_on = passages(pair for pair in told if pair not in dated)
        details = [*_shown_items(found), *_fenced(found)]
        return [*notes, *self._of_passages(said, [*told_on, *_by_act(asked)], details, name=name)]

    def _of_passages(
        self, said: Utterance, told: Sequence[Passage], details: Sequence[str], name: str
    ) -> list[Note]:
        """A note for each passage; lists and pasted code belong to the strongest."""
        if not told:
            return (
                [
                    _message_note(
                        self._scene, said, "statement", words="", name=name, details=details
                    )
                ]
                if details
                else []
            )
        holder = min(told, key=lambda passage: STRONGEST.index(passage.act))
        notes = []
        for passage in told:
            notes.append(
                self._passage_note(
                    said, passage, name, details=details if passage is holder else ()
                )
            )
            if (
                any(is_trouble(words) for _, words in passage.sentences)
                and passage.act != "outcome"
            ):
                self._trouble = (" ".join(passage.words), said.seq)
        return notes

    def _passage_note(
        self, said: Utterance, passage: Passage, name: str, details: Sequence[str]
    ) -> Note:
        words, act = passage.words, passage.act
        if act in ("request", "question") and not self._scene.is_coding:
            return _message_note(
                self._scene,
                said,
                act,
                words=clip(" ".join(words), _LONGEST_QUESTION),
                name=name,
                details=details,
            )
        chosen = _chosen(words, [each in ("request", "report") for each, _ in passage.sentences])
        if act == "outcome":
            return self._outcome(said, chosen, words, name=name, details=details)
        return _message_note(self._scene, said, act, words=chosen, name=name, details=details)

    def _outcome(
        self, said: Utterance, chosen: str, words: Sequence[str], name: str, details: Sequence[str]
    ) -> Note:
        """How something ended, with the trouble that it put an end to."""
        trouble, self._trouble = self._trouble, None
        is_over = trouble is not None and any(map(leans, words))
        about = f" ({phrases.TROUBLE} {clip(trouble[0], 200)})" if trouble and is_over else ""
        seqs = [trouble[1], said.seq] if trouble and is_over else [said.seq]
        category: Category = "fix" if any(map(names_a_cure, words)) else "statement"
        label, _, priority = _SHAPES["outcome"]
        return make_note(
            self._scene,
            priority,
            category,
            text=f"{_label(label, name)} {chosen}{about}",
            at=said.at,
            seqs=seqs,
            inputs=["user"],
            details=details,
            is_dated=True,
            **mentioned(said.text, self._scene.paths),
        )


def _given_task(scene: Scene, said: Utterance) -> Note:
    found = outline(said.text)
    words = clip(" ".join([*found.prose, *found.closing]), 400)
    return make_note(
        scene,
        "high",
        "request",
        text=f"{phrases.GIVEN_TASK} {words}",
        at=said.at,
        seqs=[said.seq],
        inputs=["assistant"],
        details=[clip(item, 140) for item in found.items[:10]],
        **mentioned(said.text, scene.paths),
    )


def _is_short_answer(sorted_sentences: list[tuple[Act, str]]) -> bool:
    return bool(sorted_sentences) and not any(
        act in ("question", "outcome") for act, _ in sorted_sentences
    )


def _answer(scene: Scene, said: Utterance, asked: Utterance, category: Category) -> Note:
    question = next(
        (words for words in reversed(sentences(plain(asked.text))) if words.endswith(("?", "？"))),
        "",
    )
    text = f"{phrases.ANSWERED} {said.text} ({phrases.ABOUT} {clip(question, 200)})"
    return make_note(
        scene,
        "high",
        category,
        text=text,
        at=said.at,
        seqs=[asked.seq, said.seq],
        inputs=["user", "assistant"],
        is_dated=True,
    )


def _sorted(scene: Scene, words: Sequence[str]) -> list[tuple[Act, str]]:
    """Each sentence with what is done with it; a reason stays with the sentence that it
    explains.
    """
    found: list[tuple[Act, str]] = []
    for sentence in words:
        if found and found[-1][0] in DURABLE and sentence.lower().startswith(_BECAUSE):
            found[-1] = (found[-1][0], f"{found[-1][1]} {sentence}")
        else:
            found.append((sort(sentence, scene.is_coding), sentence))
    return found


def _sentence_note(scene: Scene, said: Utterance, act: Act, words: str, name: str) -> Note:
    label, category, priority = _SHAPES[act]
    replaced = replaced_by(words) if act in ("change", "preference") else ""
    shown = clip(words, 500)
    text = f"{_label(label, name)} {shown}" + (
        f" ({phrases.REPLACES} {clip(replaced, 80)})" if replaced else ""
    )
    return make_note(
        scene,
        priority,
        category,
        text=text,
        at=said.at,
        seqs=[said.seq],
        inputs=["user"],
        is_dated=True,
        replaces=replaced,
        **mentioned(words, scene.paths),
    )


def _is_told(act: Act, words: str) -> bool:
    return act in ("report", "outcome") or (act == "statement" and is_telling(words))


def _by_act(asked: Sequence[Pair]) -> list[Passage]:
    """What is requested and what is asked, apart."""
    acts = dict.fromkeys(act for act, _ in asked)
    return [Passage(act, [pair for pair in asked if pair[0] == act]) for act in acts]


def _message_note(
    scene: Scene, said: Utterance, act: Act, words: str, name: str, details: Sequence[str]
) -> Note:
    label, category, priority = _SHAPES[
        "statement" if act == "report" and not scene.is_coding else act
    ]
    if act == "request" and not scene.is_coding:
        priority = "medium"
    if name and category in ("request", "question"):
        category, priority = "note", "low"  # asked of another person, not of the agent
    text = f"{_label(label, name)} {words}".strip()
    return make_note(
        scene,
        priority,
        category,
        text=text,
        at=said.at,
        seqs=[said.seq],
        inputs=["user"],
        details=details,
        is_dated=True,
        **mentioned(said.text, scene.paths),
    )


def _label(label: str, name: str) -> str:
    return f"{name}:" if name else label


def _chosen(words: list[str], is_strong: list[bool]) -> str:
    """All sentences when they fit; else the first two, then the strong ones, in their order."""
    if sum(map(len, words)) + len(words) <= _LONGEST_WORDS:
        return " ".join(words)
    order = sorted(range(len(words)), key=lambda place: (place > 1, not is_strong[place], place))
    kept: list[int] = []
    room = _LONGEST_WORDS
    for place in order:
        if len(words[place]) < room:
            kept.append(place)
            room -= len(words[place]) + 1
    if not kept:
        return clip(words[0], _LONGEST_WORDS)
    return " ".join(words[place] for place in sorted(kept)) + " …"


def _shown_items(found: TextOutline) -> list[str]:
    return [clip(item, 200) for item in found.items[:14]]


def _fenced(found: TextOutline) -> list[str]:
    """Of pasted code and logs the line that tells, or what is defined."""
    shown: list[str] = []
    for fence in found.fences[:4]:
        lines = fence.code.splitlines()
        failure = failure_in(lines)
        told = [piece.text for piece in definitions(lines, fence.label).told()[:4]]
        shown += [failure.line] if failure else told or [clip(fence.code, 160)]
    return shown
