"""What a person said, as notes near to the words.

A sentence that holds beyond its message (a preference, a decision, a change, a correction)
is a note of its own. What is left of the message is one note, after the strongest thing
done with it: a request before a report, a question, a statement.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from smara.observations.models import Category, Note, Priority
from smara.observations.offline import phrases
from smara.observations.offline.acts import DURABLE, Act, replaced_by, sort
from smara.observations.offline.definitions import definitions
from smara.observations.offline.drafting import Scene, make_note, mentioned, refers_to
from smara.observations.offline.exchanges import Exchange, Said
from smara.observations.offline.small_talk import is_telling
from smara.observations.offline.telling import failure_in
from smara.observations.offline.wording import Outline, clean, clip, outline, plain, sentences

_SHAPES: dict[Act, tuple[str, Category, Priority]] = {
    "request": (phrases.REQUESTED, "request", "high"),
    "question": (phrases.ASKED, "question", "medium"),
    "statement": (phrases.STATED, "statement", "high"),
    "preference": (phrases.PREFERS, "preference", "high"),
    "decision": (phrases.DECIDED, "decision", "high"),
    "change": (phrases.CHANGED, "change", "high"),
    "correction": (phrases.CORRECTED, "change", "high"),
    "report": (phrases.REPORTED, "blocker", "high"),
    "chat": (phrases.STATED, "note", "low"),
}
_STRONGEST: tuple[Act, ...] = ("request", "report", "question", "statement", "chat")
_SPEAKER = re.compile(r"([A-Z][\w'-]{1,20}(?: [A-Z][\w'-]{1,20})?): (?=\S)")
_LONGEST_WORDS = 700
_LONGEST_QUESTION = 240
_MOST_DURABLE = 8
_SHORT_ANSWER = 80
_BECAUSE = ("because ", "since ", "so that ", "otherwise ", "it's because ")


def speakers_in(exchanges: Sequence[Exchange]) -> frozenset[str]:
    """The names before a colon with which most messages begin: a conversation between named people."""
    said = [each for exchange in exchanges for each in exchange.said]
    heads = [match[1] for each in said if (match := _SPEAKER.match(each.text))]
    return frozenset(heads) if len(heads) > 1 and len(heads) > len(said) // 2 else frozenset()


def notes_of_person(scene: Scene, exchange: Exchange, asked: Said | None, speakers: frozenset[str]) -> list[Note]:
    """The notes on what a person said in an exchange. ``asked`` is the question that the agent had ended with."""
    notes: list[Note] = []
    for said in exchange.said:
        if said.voice == "caller":
            notes.append(_given_task(scene, said))
        else:
            notes += _of_message(scene, said, asked, speakers)
            asked = None
    for part, seq, at in exchange.placeholders:
        label = part.name or part.uri or part.media_type or part.type
        text = f"{phrases.ATTACHED} {part.type} {clip(clean(f'{label} {part.text}'), 200)}"
        notes.append(make_note(scene, "low", "note", text, at=at, seqs=[seq], inputs=["user"]))
    return notes


def _given_task(scene: Scene, said: Said) -> Note:
    found = outline(said.text)
    words = clip(" ".join([*found.prose, *found.closing]), 400)
    return make_note(
        scene, "high", "request", f"{phrases.GIVEN_TASK} {words}", at=said.at, seqs=[said.seq], inputs=["assistant"],
        details=[clip(item, 140) for item in found.items[:10]], **mentioned(said.text, scene.paths),
    )  # fmt: skip


def _of_message(scene: Scene, said: Said, asked: Said | None, speakers: frozenset[str]) -> list[Note]:
    name, text = "", said.text
    if (match := _SPEAKER.match(text)) and match[1] in speakers:
        name, text = match[1], text[match.end() :]
    found = outline(text)
    sorted_sentences = _sorted(scene, [*found.prose, *found.closing])
    if asked is not None and len(said.text) <= _SHORT_ANSWER and _is_short_answer(sorted_sentences):
        is_request = any(act == "request" for act, _ in sorted_sentences)
        return [
            _answer(scene, said, asked, "request" if is_request else "decision" if scene.is_coding else "statement")
        ]
    durable = [pair for pair in sorted_sentences if pair[0] in DURABLE]
    notes = [_sentence_note(scene, said, act, words, name) for act, words in durable[:_MOST_DURABLE]]
    rest = [(act, words) for act, words in sorted_sentences if act not in DURABLE]
    gather = _rest_notes if scene.is_coding else _talk_notes
    return [*gather(scene, said, rest, found, name), *notes]


def _is_short_answer(sorted_sentences: list[tuple[Act, str]]) -> bool:
    return bool(sorted_sentences) and not any(act == "question" for act, _ in sorted_sentences)


def _answer(scene: Scene, said: Said, asked: Said, category: Category) -> Note:
    question = next((words for words in reversed(sentences(plain(asked.text))) if words.endswith(("?", "？"))), "")
    text = f"{phrases.ANSWERED} {said.text} ({phrases.ABOUT} {clip(question, 200)})"
    return make_note(
        scene, "high", category, text, at=said.at, seqs=[asked.seq, said.seq], inputs=["user", "assistant"],
        is_dated=True,
    )  # fmt: skip


def _sorted(scene: Scene, words: Sequence[str]) -> list[tuple[Act, str]]:
    """Each sentence with what is done with it; a reason stays with the sentence that it explains."""
    found: list[tuple[Act, str]] = []
    for sentence in words:
        if found and found[-1][0] in DURABLE and sentence.lower().startswith(_BECAUSE):
            found[-1] = (found[-1][0], f"{found[-1][1]} {sentence}")
        else:
            found.append((sort(sentence, scene.is_coding), sentence))
    return found


def _sentence_note(scene: Scene, said: Said, act: Act, words: str, name: str) -> Note:
    label, category, priority = _SHAPES[act]
    replaced = replaced_by(words) if act in ("change", "preference") else ""
    shown = clip(words, 500)
    text = f"{_label(label, name)} {shown}" + (f" ({phrases.REPLACES} {clip(replaced, 80)})" if replaced else "")
    return make_note(
        scene, priority, category, text, at=said.at, seqs=[said.seq], inputs=["user"], is_dated=True,
        replaces=replaced, **mentioned(words, scene.paths),
    )  # fmt: skip


def _rest_notes(scene: Scene, said: Said, rest: Sequence[tuple[Act, str]], found: Outline, name: str) -> list[Note]:
    """What is left of a message about work, as one note after the strongest thing done with it."""
    told = [pair for pair in rest if pair[0] != "chat"]
    details = [*_shown_items(found), *_fenced(found)]
    if not told and not details:
        return []
    acts = [act for act, _ in told]
    act: Act = next(act for act in _STRONGEST if act in acts) if acts else "statement"
    words = _chosen([words for _, words in told], [each in ("request", "report") for each in acts])
    return [_message_note(scene, said, act, words, name, details)]


def _talk_notes(scene: Scene, said: Said, rest: Sequence[tuple[Act, str]], found: Outline, name: str) -> list[Note]:
    """What is left of a message about life: what was told, what was asked; small talk is dropped.

    Every sentence with a date of its own is an event and stands for itself.
    """
    told = [words for act, words in rest if act in ("statement", "report") and is_telling(words)]
    dated = [words for words in told if refers_to(scene, words, said.at)] if len(told) > 1 else []
    plain_words = [words for words in told if words not in dated]
    asked = [(act, words) for act, words in rest if act in ("request", "question") and (not name or is_telling(words))]
    notes = [_sentence_note(scene, said, "statement", words, name) for words in dated]
    details = [*_shown_items(found), *_fenced(found)]
    if plain_words:
        words = _chosen(plain_words, [False] * len(plain_words))
        notes.append(_message_note(scene, said, "statement", words, name, () if asked else details))
    if asked or (details and not plain_words):
        act: Act = "request" if any(act == "request" for act, _ in asked) else "question" if asked else "statement"
        words = clip(" ".join(words for _, words in asked), _LONGEST_QUESTION)
        notes.append(_message_note(scene, said, act, words, name, details))
    return notes


def _message_note(scene: Scene, said: Said, act: Act, words: str, name: str, details: Sequence[str]) -> Note:
    label, category, priority = _SHAPES[act]
    if act == "request" and not scene.is_coding:
        priority = "medium"
    if name and category in ("request", "question"):
        category, priority = "note", "low"  # asked of another person, not of the agent
    text = f"{_label(label, name)} {words}".strip()
    return make_note(
        scene, priority, category, text, at=said.at, seqs=[said.seq], inputs=["user"], details=details, is_dated=True,
        **mentioned(said.text, scene.paths),
    )  # fmt: skip


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


def _shown_items(found: Outline) -> list[str]:
    return [clip(item, 200) for item in found.items[:14]]


def _fenced(found: Outline) -> list[str]:
    """Of pasted code and logs the line that tells, or what is defined."""
    shown: list[str] = []
    for fence in found.fences[:4]:
        lines = fence.code.splitlines()
        failure = failure_in(lines)
        told = [piece.text for piece in definitions(lines, fence.label).told()[:4]]
        shown += [failure.line] if failure else told or [clip(fence.code, 160)]
    return shown
