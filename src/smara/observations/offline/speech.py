"""Write notes on what people and agents say, close to the words.

A person's sentences are classified (request, question, decision, preference, correction); small
talk without names or numbers is recognized, so that no note is made of it. Neighbouring sentences
of one act are grouped into passages; each passage becomes a note. Of an agent's words findings,
choices, completions, answers and questions become notes; announcements do not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from smara.actions.failures import failure_in
from smara.core.startup.record import dataclass
from smara.core.startup.regex import re
from smara.observations.models import Category, Note, Priority
from smara.observations.offline.code import definitions
from smara.observations.offline.exchanges import Exchange, Utterance
from smara.observations.offline.notes import (
    CUES,
    WORDS,
    Scene,
    TextOutline,
    clip,
    joined,
    outline,
    plain,
    sentences,
)
from smara.observations.reply.mentions import files_in

Act = Literal[
    "request",
    "question",
    "statement",
    "preference",
    "decision",
    "change",
    "correction",
    "report",
    "chat",
]

DURABLE: frozenset[Act] = frozenset({"preference", "decision", "change", "correction"})
"""Acts that hold beyond the message they stand in; each becomes a note of its own."""

# The acts that a sentence shows by its cues alone, whatever else it does.
_LASTING_ACTS: tuple[Act, ...] = ("correction", "decision", "change", "preference")
_FOREIGN_ACTS: tuple[Act, ...] = ("preference", "change", "decision")
# An English sentence has at least so many plain letters; "naïve café" happens.
_ENGLISH = 0.97
_UP_TO_A_PAUSE = r"(.{1,60}?)(?:[.,;!]|$| (?:and|but|any|in|from|for|since|because)\b)"
_REPLACED = (
    r"\bfrom (.{1,60}?) to\b",
    r"\breplac(?:ed|ing) (.{1,60}?) (?:with|by)\b",
    rf"\b(?:no longer|stopped|don't|not) (?:use|using|on|with|work(?:ing)? with) {_UP_TO_A_PAUSE}",
    r"\b(?:instead of|rather than|got rid of|dropped|removed|retired|deprecated) (?:the )?"
    + _UP_TO_A_PAUSE,
)


def sort(sentence: str, is_coding: bool = True) -> Act:
    """Return what a person does with a sentence."""
    text = sentence.strip().lower().replace("’", "'")[:400]
    if CUES["chat"].fullmatch(text):
        return "chat"
    if opening := CUES["opening"].match(text):
        text = text[opening.end() :]
    if (foreign := _foreign_act(text)) is not None:
        return foreign
    is_question = text.rstrip("\"')] ").endswith(("?", "？"))
    if not is_question:
        for act in _LASTING_ACTS:
            if CUES[act].search(text):
                return act
    first, verbs = re.split(r"[^a-z']", text, maxsplit=1)[0], WORDS["verbs"]
    wants_words = bool(CUES["asks to tell"].match(text))
    if CUES["asks to do"].match(text):
        # "We need a migration for this?" asks; with "can you" in it, it requests after all.
        is_wish = not text.startswith(("we ", "i ", "you "))
        is_request = not is_question or is_wish or bool(CUES["asks inside"].search(text))
    else:
        # "main was clean; fix the issues" asks in its second half.
        later = any((match[1] or match[2]) in verbs for match in CUES["asks later"].finditer(text))
        is_request = later or (first in verbs and not is_question)
    if is_request and not wants_words:
        return "request"
    if is_question or wants_words or (CUES["question opening"].match(text) and first not in verbs):
        return "question"
    if CUES["report"].search(text):
        return "report"
    is_statement = (
        not is_coding
        or CUES["subject and verb"].match(text)
        or (
            (CUES["statement"].match(text) or (text.isascii() and text.count(" ") >= 3))
            and CUES["verb"].search(text)
        )
    )
    return "statement" if is_statement else "request"


def _foreign_act(text: str) -> Act | None:
    """The act of a sentence in another language; None when it may be English."""
    letters = "" if text.isascii() else list(filter(str.isalpha, text[:120]))
    is_foreign = sum(map(str.isascii, letters)) < _ENGLISH * len(letters)
    if text.rstrip("\"')] ").endswith(("?", "？", "吗", "か。", "呢")):
        return "question" if is_foreign else None
    return next(
        (act for act in _FOREIGN_ACTS if CUES[f"foreign {act}"].search(text)),
        "request" if is_foreign else None,
    )


def replaced_by(sentence: str) -> str:
    """Return what a change ends: "from Redux to Zustand" → Redux."""
    matches = (re.search(pattern, sentence[:600], re.IGNORECASE) for pattern in _REPLACED)
    return next((end for match in matches if match and (end := match[1].strip())), "")


def is_telling(sentence: str) -> bool:
    """Return True if a sentence holds a fact, not a reaction.

    Words that could be said of anything do not.
    """
    words = map(str.lower, CUES["plain word"].findall(sentence[:400]))
    is_about = sum(word not in WORDS["empty"] for word in words) > 1
    return is_about or bool(CUES["names or numbers"].search(sentence))


STRONGEST: tuple[Act, ...] = ("request", "question", "report", "statement", "chat")
"""A passage is what its strongest sentence is."""

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
            # It needs the one before it to be understood.
            needs_more = len(words.split()) < _FEW_WORDS or bool(CUES["leans"].search(words))
            is_leaning = needs_more and not (is_after_question and act == "request")
        if before and is_leaning:
            before.append((act, words))
        else:
            groups.append([(act, words)])
    by_act: dict[Act, list[tuple[Act, str]]] = {}
    for group in groups:
        strongest = min((act for act, _ in group), key=STRONGEST.index)
        by_act.setdefault(strongest, []).extend(group)
    return by_act


_ACT_SHAPES: dict[Act, tuple[str, Category, Priority]] = {
    "request": ("User requested:", "request", "medium"),
    "question": ("User asked:", "question", "medium"),
    "statement": ("User said:", "statement", "high"),
    "preference": ("User prefers:", "preference", "high"),
    "decision": ("User decided:", "decision", "high"),
    "change": ("User changed:", "change", "high"),
    "correction": ("User corrected:", "change", "high"),
    "report": ("User reported:", "blocker", "high"),
    "chat": ("User said:", "note", "low"),
}
_LONGEST_WORDS = 700
_LONGEST_QUESTION = 240
_MOST_DURABLE = 8
_SHORT_ANSWER = 80
_BECAUSE = ("because ", "since ", "so that ", "otherwise ", "it's because ")


class Person:
    """The person who talks."""

    def __init__(self, scene: Scene, exchanges: Sequence[Exchange]) -> None:
        self._scene = scene
        # In a talk of several, most messages begin with the name of who speaks.
        texts = [each.text for exchange in exchanges for each in exchange.words]
        names = [match[1] for text in texts if (match := CUES["speaker"].match(text))]
        self._speakers = set(names) if len(names) > max(1, len(texts) // 2) else set()

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
        notes += [
            scene.note("low", "note", f"User attached: {file.text}", [file], inputs=["user"])
            for file in exchange.attachments
        ]
        return notes

    def _of_message(self, message: Utterance, question: Utterance | None) -> list[Note]:
        is_coding, name, text = self._scene.is_coding, "", message.text
        if (match := CUES["speaker"].match(text)) and match[1] in self._speakers:
            name, text = match[1], text[match.end() :]
        parts = outline(text)
        pairs: list[Pair] = []
        for words in parts.prose:
            if pairs and pairs[-1][0] in DURABLE and words.lower().startswith(_BECAUSE):
                pairs[-1] = (pairs[-1][0], f"{pairs[-1][1]} {words}")
            else:
                pairs.append((sort(words, is_coding), words))
        acts = {act for act, _ in pairs}
        is_short = len(message.text) <= _SHORT_ANSWER and "question" not in acts
        if question is not None and acts and is_short:
            questions = [each for each in sentences(plain(question.text)) if each[-1] in "?？"]
            about = clip(questions[-1], 200) if questions else ""
            usual: Category = "decision" if is_coding else "statement"
            return [
                self._scene.note(
                    "high",
                    "request" if "request" in acts else usual,
                    f"User answered: {message.text} (asked: {about})",
                    [message, question],
                    inputs=["user", "assistant"],
                    is_dated=True,
                )
            ]
        rest = [pair for pair in pairs if pair[0] not in DURABLE]
        dated: list[Pair] = []
        if is_coding:
            groups = passages(pair for pair in rest if pair[0] != "chat")
        else:
            facts = [
                pair
                for pair in rest
                if pair[0] == "report" or (pair[0] == "statement" and is_telling(pair[1]))
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
            defined = [piece.text for piece in definitions(lines, fence.label)[:4]]
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
            is_wish = act in ("request", "question") and not self._scene.is_coding
            text = " ".join(words for _, words in pairs)
            text = clip(text, _LONGEST_QUESTION if is_wish else _LONGEST_WORDS)
            yield self._note(message, act, text, name=name, details=about)

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
        **facts: Any,
    ) -> Note:
        """Write a note on a person's words; its files are those that the source names."""
        is_coding = self._scene.is_coding
        label, usual, priority = _ACT_SHAPES[
            "statement" if act == "report" and not is_coding else act
        ]
        if name and usual in ("request", "question"):
            usual, priority = "note", "low"  # asked of another person, not of the agent
        return self._scene.note(
            priority,
            usual,
            f"{f'{name}:' if name else label} {text}".strip(),
            [message],
            inputs=["user"],
            is_dated=True,
            **self._scene.mentions(source or message.text),
            **facts,
        )


_SHORTEST_EXPLANATION = 25


def explains(words: str) -> bool:
    """Return True if a sentence tells a cause, choice or hindrance."""
    if len(words) < _SHORTEST_EXPLANATION or words.rstrip().endswith(":"):
        return False
    if CUES["choice"].search(words):
        return True
    if announces(words):
        return False
    is_surprise = "`" in words and CUES["contrast"].search(words)
    return bool(is_surprise or CUES["finding"].search(words) or CUES["blocked"].search(words))


def announces(words: str) -> bool:
    """Return True if a sentence only says what comes next."""
    return CUES["announces"].match(words) is not None


def telling_sentences(sentences: list[str]) -> list[str]:
    """Drop sentences that only announce, unless there are no others."""
    return [words for words in sentences if len(words) > 12 and not announces(words)] or sentences


Wish = Literal["request", "question", "other"]
"""What the person wants of the agent in an exchange."""

_FOR_A_FINDING, _FOR_AN_ANSWER, _FOR_AN_ITEM = 320, 420, 150
_FOR_TALK, _FOR_AN_ITEM_OF_TALK = 220, 72
_MOST_ITEMS = 12
_AGENT_SHAPES: Mapping[Category, tuple[str, Priority]] = {
    "completion": ("Done:", "high"),
    "answer": ("Agent answered:", "medium"),
    "finding": ("Agent found:", "medium"),
    "decision": ("Agent decided:", "medium"),
    "blocker": ("Blocked:", "high"),
}
_LABELLED_DATA = ("json", "yaml", "toml", "env")


def _labelled(label: str, text: str) -> str:
    """Put a label before words that do not begin with it themselves."""
    is_double = text.lower().startswith((label.lower(), f"{label[:-1].lower()}. "))
    return f"{label} {text[len(label) :].strip() if is_double else text}".strip()


@dataclass(frozen=True, eq=False)
class Assistant:
    """The agent in one exchange: writes notes on what it says."""

    scene: Scene
    wish: Wish

    def between(self, utterance: Utterance) -> list[Note]:
        """Write notes on what is explained or decided between calls."""
        parts = outline(utterance.text)
        notes = self._code(utterance, parts)
        focus = self.scene.focus
        explained = [
            each
            for each in parts.prose
            if explains(each)
            or any(word.strip(".,;:!?`\"'()") in focus for word in each.lower().split())
        ][:2]
        if explained:
            notes.append(self._explanation(utterance, explained))
        return notes

    def last(self, utterance: Utterance) -> list[Note]:
        """Write notes on the words that end a turn: answer, completion, question."""
        parts = outline(utterance.text)
        notes = self._code(utterance, parts)
        words = parts.prose
        question = words.pop() if words and words[-1].rstrip().endswith(("?", "？")) else ""
        if words or parts.items:
            category: Category = "finding" if any(map(CUES["finding"].search, words)) else "answer"
            if any(map(CUES["blocked"].search, words)):
                category = "blocker"
            if self.wish == "question" or not self.scene.is_coding:
                category = "answer"
            elif self.wish == "request" and any(
                map(CUES["completion"].search, words[:4] + words[-2:])
            ):
                category = "completion"
            notes.append(self._summary(utterance, category, parts))
        if question and self.scene.is_coding:
            text = f"Agent asked: {clip(question, 300)}"
            blocked = [clip(each, 240) for each in words if CUES["blocked"].search(each)][:1]
            category = "blocker" if blocked else "question"
            notes.append(self._note(utterance, "medium", category, text, details=blocked))
        return notes

    def _explanation(self, utterance: Utterance, explained: list[str]) -> Note:
        text = joined(explained, _FOR_A_FINDING, " ")
        category: Category = "finding"
        facts: dict[str, Any] = {}
        if CUES["choice"].search(text) and not CUES["finding"].search(text):
            category = "decision"
        elif any(map(CUES["blocked"].search, explained)):
            category = "blocker"
        elif self.scene.mode == "bug_fixing" and CUES["root cause"].search(text):
            facts = {"rootCause": text}
        elif name := {"debugging": "symptoms", "research": "findings"}.get(self.scene.mode):
            facts = {name: [clip(words, 200) for words in explained]}
        label, priority = _AGENT_SHAPES[category]
        priority = "high" if "rootCause" in facts else priority
        return self._note(utterance, priority, category, _labelled(label, text), **facts)

    def _summary(self, utterance: Utterance, category: Category, parts: TextOutline) -> Note:
        """Write the telling sentences of a message, and the items of its lists."""
        is_coding = self.scene.is_coding
        size = _FOR_AN_ITEM if is_coding else _FOR_AN_ITEM_OF_TALK
        details = [clip(item, size) for item in parts.items[:_MOST_ITEMS]]
        if len(parts.items) > _MOST_ITEMS:
            details.append("…")
        words = telling_sentences(parts.prose)
        if not is_coding:
            words = list(filter(CUES["names or numbers"].search, words)) or words[:1]
        label, priority = _AGENT_SHAPES[category]
        text = _labelled(label, joined(words, _FOR_AN_ANSWER if is_coding else _FOR_TALK, " "))
        return self._note(utterance, priority, category, text, details=details)

    def _code(self, utterance: Utterance, parts: TextOutline) -> list[Note]:
        """Write a note on code shown in the text: where it belongs and what it defines."""
        lines: list[str] = []
        for fence in parts.fences[:6]:
            files = files_in(f"{fence.label} {fence.before} {fence.code[:120]}")
            name = f"x.{fence.label}" if fence.label in _LABELLED_DATA else ""
            if pieces := definitions(fence.code.splitlines(), name):
                shown = joined((piece.text for piece in pieces), 300)
                lines.append(f"{files[0]}: {shown}" if files else shown)
        if not lines:
            return []
        text = f"Showed code: {lines.pop()}" if len(lines) == 1 else "Showed code:"
        return [self._note(utterance, "medium", "code", text, details=lines)]

    def _note(
        self,
        utterance: Utterance,
        priority: Priority,
        category: Category,
        text: str,
        *,
        details: Sequence[str] = (),
        **facts: Any,
    ) -> Note:
        return self.scene.note(
            priority,
            category,
            text,
            [utterance],
            inputs=["assistant"],
            details=details,
            **self.scene.mentions(" ".join([text, *details])),
            **facts,
        )
