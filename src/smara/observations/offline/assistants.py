"""What the agent said: findings, decisions, completions, answers and questions.

Most of what a coding agent says between its calls announces the next call, and is dropped.
What explains something is kept by the sentence. The words with which it ends its turn
matter most: they are kept with their lists.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from smara.observations.models import Category, Note, Priority
from smara.observations.offline import phrases
from smara.observations.offline.agent_speech import (
    BLOCKED,
    CHOICE,
    COMPLETION,
    FINDING,
    MILESTONE,
    ROOT_CAUSE,
    SURE,
    announces,
    explains,
    is_telling_item,
    telling_sentences,
)
from smara.observations.offline.definitions import definitions
from smara.observations.offline.drafting import Scene, joined, make_note, mentioned
from smara.observations.offline.exchanges import Said
from smara.observations.offline.mentions import files_in
from smara.observations.offline.small_talk import has_names
from smara.observations.offline.wording import Fence, Outline, clip, outline

Asked = Literal["request", "question", "other"]

_FOR_A_FINDING, _FOR_AN_ANSWER, _FOR_AN_ITEM = 320, 420, 150
_FOR_TALK, _FOR_AN_ITEM_OF_TALK = 220, 72
_MOST_ITEMS, _MOST_ITEMS_BETWEEN = 12, 6
_LABELS: Mapping[Category, str] = {
    "completion": phrases.DONE, "answer": phrases.REPLIED, "finding": phrases.FOUND,
    "blocker": phrases.BLOCKED,
    "note": phrases.SAID,
}  # fmt: skip
_PRIORITIES: Mapping[Category, Priority] = {"completion": "high", "blocker": "high", "note": "low"}
_LABELLED_DATA = ("json", "yaml", "toml", "env")


class Assistant:
    """Writes notes on what the agent says in one exchange."""

    def __init__(self, scene: Scene, asked: Asked) -> None:
        self._scene = scene
        self._asked = asked

    def between(self, said: Said) -> list[Note]:
        """Words between calls: what they explain, decide or report as done."""
        found = outline(said.text)
        notes = self._code(said, found)
        whole = [*found.prose, *found.closing]
        is_summary = len(found.items) >= 3 and any(map(COMPLETION.search, whole[:2]))
        if is_summary or (any(map(MILESTONE.search, whole[:2])) and not announces(whole[0])):
            return [*notes, self._note(said, "completion", whole, found.items)]
        explained = self._explained(whole)
        if explained:
            notes.append(self._explanation(said, explained))
        if len(found.items) >= 2 and not explained and len(said.text) > 200:
            notes.append(self._note(said, "note", whole, found.items))
        return notes

    def thought(self, said: Said) -> list[Note]:
        """Reasoning: only a cause that it names."""
        sure = list(filter(SURE.search, outline(said.text).prose))
        return [self._explanation(said, sure[:1])] if sure else []

    def last(self, said: Said) -> list[Note]:
        """The words that end a turn: an answer, a completion, a question to the user."""
        found = outline(said.text)
        notes = self._code(said, found)
        whole = [*found.prose, *found.closing]
        if not whole and not found.items:
            return notes
        question = whole[-1] if whole and whole[-1].rstrip().endswith(("?", "？")) else ""
        told = [words for words in whole if words != question]
        if told or found.items:
            notes.append(self._note(said, self._category(told), told, found.items))
        if question and self._scene.is_coding:
            notes.append(self._question(said, question, next(filter(BLOCKED.search, told), "")))
        return notes

    def _question(self, said: Said, question: str, blocked: str) -> Note:
        text = f"{phrases.ASKED_USER} {clip(question, 300)}"
        if blocked:
            return self._made(said, "medium", "blocker", text, [clip(blocked, 240)])
        return self._made(said, "medium", "question", text)

    def _category(self, told: list[str]) -> Category:
        if self._asked == "question" or not self._scene.is_coding:
            return "answer"
        is_done = any(
            COMPLETION.search(words) or MILESTONE.search(words) for words in told[:4] + told[-2:]
        )
        if is_done and self._asked == "request":
            return "completion"
        if any(map(BLOCKED.search, told)):
            return "blocker"
        return "finding" if any(map(FINDING.search, told)) else "answer"

    def _explained(self, whole: list[str]) -> list[str]:
        return [words for words in whole if explains(words) or self._is_wanted(words)][:2]

    def _is_wanted(self, words: str) -> bool:
        return any(
            word.strip(".,;:!?`\"'()") in self._scene.wanted for word in words.lower().split()
        )

    def _explanation(self, said: Said, explained: list[str]) -> Note:
        text = joined(explained, _FOR_A_FINDING, " ")
        if CHOICE.search(text) and not FINDING.search(text):
            return self._made(said, "medium", "decision", f"{phrases.CHOSE} {text}")
        if any(BLOCKED.search(words) for words in explained):
            return self._made(said, "high", "blocker", f"{phrases.BLOCKED} {text}")
        facts = self._facts(text, explained)
        priority: Priority = "high" if "rootCause" in facts else "medium"
        return self._made(said, priority, "finding", f"{phrases.FOUND} {text}", facts=facts)

    def _facts(self, text: str, explained: list[str]) -> dict[str, Any]:
        """What the mode of the agent wants to know of an explanation."""
        if self._scene.mode == "bug_fixing" and ROOT_CAUSE.search(text):
            return {"rootCause": text}
        name = {"debugging": "symptoms", "research": "findings"}.get(self._scene.mode)
        return {name: [clip(words, 200) for words in explained]} if name else {}

    def _note(self, said: Said, category: Category, told: list[str], items: list[str]) -> Note:
        """Words that are kept as a whole: their telling sentences, and the items of their lists."""
        is_coding = self._scene.is_coding
        telling = [item for item in items if is_telling_item(item)]
        most = _MOST_ITEMS if category != "note" else _MOST_ITEMS_BETWEEN
        details = [
            clip(item, _FOR_AN_ITEM if is_coding else _FOR_AN_ITEM_OF_TALK)
            for item in telling[:most]
        ]
        if len(telling) > most:
            details.append("…")
        words = telling_sentences(told)
        if not is_coding:
            words = list(filter(has_names, words)) or words[:1]
        text = (
            f"{_LABELS[category]} {joined(words, _FOR_AN_ANSWER if is_coding else _FOR_TALK, ' ')}"
        ).strip()
        return self._made(said, _PRIORITIES.get(category, "medium"), category, text, details)

    def _code(self, said: Said, found: Outline) -> list[Note]:
        """Code shown in the text itself: where it belongs and what it defines."""
        told = [line for fence in found.fences[:6] if (line := _fence_words(fence))]
        if not told:
            return []
        text = f"{phrases.WROTE}: {told[0]}" if len(told) == 1 else f"{phrases.WROTE}:"
        return [self._made(said, "medium", "code", text, told if len(told) > 1 else [])]

    def _made(
        self,
        said: Said,
        priority: Priority,
        category: Category,
        text: str,
        details: Sequence[str] = (),
        facts: Mapping[str, Any] | None = None,
    ) -> Note:
        return make_note(
            self._scene,
            priority,
            category,
            text=text,
            at=said.at,
            seqs=[said.seq],
            inputs=["assistant"],
            details=details,
            **mentioned(" ".join([text, *details]), self._scene.paths),
            **(facts or {}),
        )


def _fence_words(fence: Fence) -> str:
    files, _ = files_in(f"{fence.label} {fence.before} {fence.code[:120]}")
    name = f"x.{fence.label}" if fence.label in _LABELLED_DATA else ""
    told = definitions(fence.code.splitlines(), name).told()
    if not told:
        return ""
    return (f"{files[0]}: " if files else "") + joined((piece.text for piece in told), 300)
