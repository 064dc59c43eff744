"""Read a person's own sentences, with the facts of their exchange.

What a person pasted is not the person's word. So only lines of prose count, up to the first sign
that the rest was written elsewhere. A fact of the exchange is, for example, that the agent had
asked, or that it took the words up in its next turn.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Literal, NamedTuple

from smara.core.extract import word_set
from smara.core.memory_block import without_memory_blocks
from smara.core.startup.regex import re, regex
from smara.core.terms import cjk_run
from smara.core.text import analyze

Speaker = Literal["person", "agent"]
LONGEST_SENTENCE = 700
_MOST_SENTENCES = 400
_MOST_OF_A_TURN = 20_000
_DOCUMENT_LINES, _DOCUMENT_CHARACTERS, _DOCUMENT_HEADINGS = 45, 2_500, 2
_BLOCK = regex(r"<([A-Za-z][\w:-]*)\b[^<>]{0,400}>.*?</\1\s*>", re.DOTALL)
_FENCE = regex(r"(```|~~~).*?(?:\1|\Z)", re.DOTALL)
_TAG = regex(r"</?[A-Za-z][^<>\n]{0,200}>")
_LINK = regex(r"\bhttps?://\S+|\bwww\.\S+")
_BULLET = regex(r"^\s*(?:[-*+•·–]|\(?\d{1,2}[.)、]|[a-z][.)])\s+")
_HEADING = regex(r"\s{0,3}(?:#{1,6}\s|={4,}|-{4,}|\*\*[^*]{3,80}\*\*:?\s*$)")
_SENTENCE = regex(r"(?<=[.!?…])[\"'”’)\]]*\s+(?=[^\s])|(?<=[。！？；])")
_SHORTENED = regex(r"\b(?:e\.g|i\.e|etc|vs|approx|cf|z\.B|d\.h|bzw|p\.ej|ej|Nr|Mr|Dr)\.$", re.I)
_LONG_QUOTATION = regex(r"[\"“«„]([^\"“”«»„]{25,}?)[\"”»“]")
_CODE = regex(
    r"^\s*(?:at |File \"|Traceback|\d{4}-\d\d-\d\d[T ]\d\d|\[?\d\d:\d\d:\d\d|\$ |> |>>> |\.\.\. |"
    r"[+-]{3} |@@|diff --git|import |from \S+ import|def |class |function |const |let |var |"
    r"return\b|#include|//|/\*|\*/|<\?|\{|\}|\[(?:INFO|WARN|ERROR|DEBUG)|"
    r"(?:INFO|WARN(?:ING)?|ERROR|DEBUG|FATAL)\b|"
    r"\|.*\||npm |pip |git |sudo |docker |/[a-z][\w-]{1,20}(?:\s|$))"
)
_LABEL = regex(r"\s*(?:\[?\d?\d:\d\d(?::\d\d)?\]?\s*)?([\w][\w .@-]{0,24}):\s")
_SPEAKERS = word_set("user assistant human ai bot agent from to subject date cc me you")
_LEAST_OF_A_PAGE = 3
_PASSAGE = regex(r"\s*[\"'“‘«„].{40,}[\"'”’»]\s*$")
"""A line that is a quotation from its first to its last character."""
_PATCH = regex(r"diff --git |Index: |--- a/|\+\+\+ b/|@@ -\d")
_NAME = regex(r"`[^`\s]+`|\b\w+_\w+\b|\b[a-z]+[A-Z]\w+|\b\w+\(\)|\b[\w-]+\.[a-z]{1,4}\b")
_CAMEL = regex(r"\b[A-Z]\w*[a-z][A-Z]\w*")
_SYMBOLS = regex(r"[{}()\[\];=<>|\\/_$#@^~*+]")
_ASKS = regex(r"[?？]")
_INVERTED = regex(
    r"(?:should|is|are|was|were|does|did|would|could)\b(?! not\b)"
    r"|(?:can|shall|may|do|have|has) (?:we|you|i|it|they|there)\b|(?:how|why|who|which)\b"
    r"|what (?:\w+ )?(?:would|is|are|do|does|did|can|could|should|happens)\b",
    re.IGNORECASE,
)
"""The beginning of a question that is written without its mark."""
_SPECIFIC = regex(
    r"`[^`]+`|'[^'\s]{1,30}'|\b\d[\d.,:%]*|\b\w+_\w+|\b[a-z]+[A-Z]\w+|\.\w{1,5}\b|\b\w+\(\)"
)
_QUANTITY = regex(
    r"\d[\d.,]*(?: \d{3})*[ -]?(?:%|°C|[kMG]?Hz|[kKMGT]?i?B\b|bytes?|[munµ]?s\b|sec|seconds?|"
    r"min\b|minutes?|minuten|minutos|hours?|stunden|heures|horas|h\b|days?|tage|jours|días|mm|cm|"
    r"km|px|V|mA|counts?|requests?|rows?|tokens?|fps|rpm|秒|分|時間|小时|件|次|条)|(?:per|pro|par|"
    r"por) (?:second|minute|hour|day|sekunde|stunde|seconde|segundo|minuto|hora)",
    re.IGNORECASE,
)
"""A number with its unit, or a rate."""
_SCRIPT = regex("[\u3040-\u30ff]|[\u4e00-\u9fff]")
_WORD = regex("[\u3040-\u30ff\u4e00-\u9fff]|[^\\W\\d_]+(?:'[a-z]+)?|\\d+|[?!:]")
WORD_MARKS = "=^$"
"""With what the facts begin that are words of the sentence."""
_MOST_WORDS = 80
_REACTION = 60
"""The first characters of a turn, which react to the one before."""
_FINDING_WORDS, _FINDING_NAMES = 12, 2
"""The least words of a sentence, on average, and names of code in a pasted finding."""
_NEAR_TURNS, _LEAST_COPIED, _MOST_COPIED = 6, 30, 1
"""The agent's turns that a person may copy from; how long a copied sentence is; one is a choice."""


class SpokenTurn(NamedTuple):
    """The words of one side, up to the other's next."""

    speaker: Speaker
    text: str
    message_id: str = ""
    at_ms: int = 0
    calls: int = 0
    """How many tools an agent called in its turn."""
    files: tuple[str, ...] = ()
    """The files that it changed."""
    commands: tuple[str, ...] = ()
    """The command lines that it ran."""
    seq: int = 0
    """The place of its first message in the thread."""
    is_form: bool = False
    """Whether a person answered by a form of the host."""
    plan: str = ""
    """The plan that a person approved by it."""


_SILENCE = SpokenTurn("agent", "")


class Sentence(NamedTuple):
    """One sentence of a person, and the facts of its exchange."""

    turn: int
    text: str
    facts: dict[str, float]


@cache
def signs() -> dict[str, tuple[re.Pattern[str], tuple[str, ...]]]:
    """Return the patterns of each class of small words."""
    words: dict[str, list[str]] = {}
    runs: dict[str, list[str]] = {}
    for line in Path(__file__).with_name("signs.txt").read_text("utf-8").splitlines():
        head, separator, phrases = line.partition(": ")
        if not separator or line.startswith("#"):
            continue
        name, language = head.split()
        into = runs if language in ("zh", "ja") else words
        into.setdefault(name, []).extend(phrase.strip() for phrase in phrases.split(", "))
    return {
        name: (
            re.compile("|".join(map(_bounded, sorted(each, key=len, reverse=True))), re.IGNORECASE),
            tuple(runs.get(name, ())),
        )
        for name, each in words.items()
    }


def _bounded(phrase: str) -> str:
    """Return the pattern of a phrase as words of their own."""
    end = r"\b" if phrase[-1].isalnum() else ""
    return rf"\b{re.escape(phrase)}{end}"


def count_signs(text: str, name: str) -> int:
    """Count the small words of a class in a text."""
    pattern, runs = signs()[name]
    text = text.replace("’", "'")
    found = len(pattern.findall(text))
    if _SCRIPT.search(text):
        found += sum(text.count(run) for run in runs)
    return found


@cache
def _opening(name: str) -> re.Pattern[str]:
    """Return the pattern of a sentence that begins with a class of small words.

    "Please always sign the commits" and "We never mock" do; "It always fails" does not.
    """
    return re.compile(rf"\W*{_begun(name, 'polite', 'group')}", re.IGNORECASE)


def _begun(name: str, *before: str) -> str:
    """Return the pattern of a class of small words, after words of other classes or none."""
    words, runs = signs()[name]
    others = "|".join(signs()[each][0].pattern for each in before)
    either = "|".join((words.pattern, *map(re.escape, runs)))
    return rf"(?:(?:{others})[,:]?\s+)*(?:{either})"


@cache
def _rule_opening() -> re.Pattern[str]:
    """Return the pattern of a sentence that tells someone what is always or never done.

    "Before we start: you never run migrations here" and "no, here always pnpm" do, whatever the
    few words before the colon or comma say.
    """
    begun = _begun("ever", "polite", "group", "you", "here")
    return re.compile(rf"\W*(?:[^:,.;\n]{{1,40}}[:,]\s*)?{begun}", re.IGNORECASE)


def own_text(text: str) -> str:
    """Return the lines that a person wrote, without pasted text.

    >>> own_text("Always use pnpm.\\n```\\nnpm i\\n```\\nHere is the log:\\nWe must use yarn.")
    'Always use pnpm.\\nHere is the log:'
    """
    text = without_memory_blocks(text[:_MOST_OF_A_TURN])
    text = _FENCE.sub("\n```\n", _BLOCK.sub("\n", text))
    lines = [_TAG.sub(" ", line).rstrip() for line in text.splitlines()]
    written = [line for line in lines if line.strip()]
    is_document = (
        sum(bool(_HEADING.match(line)) for line in written) >= _DOCUMENT_HEADINGS
        or len(written) > _DOCUMENT_LINES
        or len(text) > _DOCUMENT_CHARACTERS
    )
    written_lines: list[str] = []
    for line in lines[: _foreign_from(lines)]:
        if is_document and (_HEADING.match(line) or _BULLET.match(line) or line == "```"):
            break  # what follows was written elsewhere
        if not line.strip() or _is_code(line):
            continue
        if is_document and len(line) > LONGEST_SENTENCE:
            break
        written_lines.append(line.strip())
        if line.rstrip().endswith((":", "：")) and count_signs(line, "report"):
            break  # it introduces another person's words
    return "\n".join(written_lines)


def _foreign_from(lines: Sequence[str]) -> int:
    """Return the line from which on a page, a mail or a talk of others was pasted."""
    labels = [match[1].lower() if (match := _LABEL.match(line)) else "" for line in lines]
    for number, line in enumerate(lines):
        rest = [each for each in lines[number + 1 :] if each.strip()]
        is_address = bool(_LINK.fullmatch(line.strip())) and len(rest) >= _LEAST_OF_A_PAGE
        is_talk = labels[number] in _SPEAKERS or labels.count(labels[number]) > 1
        is_labelled = bool(labels[number]) and is_talk and sum(map(bool, labels)) > 1
        if is_address or is_labelled or _PATCH.match(line):
            return number
    return len(lines)


def _is_code(line: str) -> bool:
    bare = _LINK.sub("", _BULLET.sub("", line, count=1))
    if line == "```" or line.lstrip().startswith((">", "|")) or line.startswith(("    ", "\t")):
        return True
    if _PASSAGE.match(line):
        return True
    letters = sum(character.isalpha() for character in bare)
    return (
        bool(_CODE.match(bare))
        or letters < 2
        or (len(_SYMBOLS.findall(re.sub(r"`[^`]*`", "", bare))) > 0.12 * len(bare) + 2)
    )


def sentences(text: str) -> list[str]:
    """Return the sentences of a text, without bullets.

    >>> sentences("No. Use 2.5 MB, e.g. for uploads!\\n- never more")
    ['No.', 'Use 2.5 MB, e.g. for uploads!', 'never more']
    """
    found: list[str] = []
    for line in text.splitlines():
        rest = ""
        for piece in _SENTENCE.split(_BULLET.sub("", line, count=1)):
            rest = f"{rest} {piece}" if rest else piece
            if _SHORTENED.search(rest):
                continue
            if rest.strip():
                found.append(" ".join(rest.split()))
            rest = ""
        if rest.strip():
            found.append(" ".join(rest.split()))
    return found[:_MOST_SENTENCES]


def content_terms(text: str) -> set[str]:
    """Return the index terms of a text, without its small words."""
    found = analyze(text)
    return {term for term in (*found.prose.split(), *found.code.split()) if term not in _small()}


@cache
def _small() -> frozenset[str]:
    """Return the terms of all small words, and of the commonest others."""
    lines = Path(__file__).with_name("signs.txt").read_text("utf-8").splitlines()
    # A longer word of another language may have the stem of a telling one: "maintenant".
    phrases = " ".join(
        phrase
        for line in lines
        # What a wish about the manner of answers says is not small.
        if not line.startswith(("#", "manner"))
        for phrase in line.partition(": ")[2].split(", ")
        if " " not in phrase and (" en:" in line[:14] or len(phrase) <= 5)
    )
    more = (
        "the a an and or of to in on for is are be it its that this with as i you your my me at by "
        "from than into do does was were will would can have has had they them there their also le "
        "la les un une des du de et ou en est sont ce cette il elle je tu vous der die das ein "
        "eine und oder ist sind im in zu mit von für auf el los las una y o es son en con por para "
        "o os um uma e é são em com 的 了 是 在 和 は が を に で と の も"
    )
    found = analyze(f"{phrases} {more}")
    return frozenset((*found.prose.split(), *found.code.split()))


def read_utterances(turns: Sequence[SpokenTurn]) -> list[Sentence]:
    """Return the person's own sentences, each with the facts of its exchange."""
    found: list[Sentence] = []
    for number, turn in enumerate(turns):
        if turn.speaker != "person":
            continue
        before = turns[number - 1] if number else _SILENCE
        after = turns[number + 1] if number + 1 < len(turns) else _SILENCE
        if after.calls and not turn.is_form and is_finding(own_text(turn.text)):
            continue
        spoken = [
            Sentence(number, sentence, facts)
            for sentence, facts in _facts_of(
                turn, before, after, turns[number + 2 : number + 3], is_first=number == 0
            )
        ]
        near = turns[max(0, number - 2 * _NEAR_TURNS) : number]
        agents = [_bare(each.text) for each in near if each.speaker == "agent"]
        copied = {each.text for each in spoken if _is_copied(each.text, agents)}
        found += [each for each in spoken if len(copied) <= _MOST_COPIED or each.text not in copied]
    return found


def is_finding(text: str) -> bool:
    """Return True for the prose of a review: formal, about code, impersonal.

    Who settles something speaks of us, me or you.

    >>> is_finding("The error of `load()` is wrapped twice, by `read()` and again by its own caller. "
    ...     "Wrapping it in the caller alone makes the failures of both easier to tell apart.")
    True
    """  # noqa: E501
    listed = sentences(text)
    bare = _LONG_QUOTATION.sub("", text)
    return (
        len(listed) >= 2
        and not any(each[:1].islower() for each in listed)
        and len(text.split()) >= _FINDING_WORDS * len(listed)
        and len(names_in([bare]).union(_CAMEL.findall(bare))) >= _FINDING_NAMES
        and not any(count_signs(bare, name) for name in ("self", "you", "group"))
    )


def without_host_blocks(text: str) -> str:
    """Return a message without a program's blocks before it.

    >>> without_host_blocks("<system_notice>Work in /w.</system_notice>\\n\\nMend the cart")
    'Mend the cart'
    """
    while (block := _BLOCK.match(text)) is not None:
        text = text[block.end() :].lstrip()
    return text


def split_copied(text: str, agents: Sequence[str]) -> tuple[str, str]:
    """Return a person's own words, and those copied from an agent.

    Who copies all of it has chosen it: then it is the person's.

    >>> split_copied("The tax is rounded too early here. mend it", ["The tax is rounded too early here."])
    ('mend it', 'The tax is rounded too early here.')
    """  # noqa: E501
    bare = [_bare(each) for each in agents]
    own: list[str] = []
    copied: list[str] = []
    run = ""
    for sentence in sentences(text):
        # A short sentence is copied if it follows a copied one there as here.
        longer = f"{run} {sentence}"
        run = longer if _is_copied(longer, bare) else sentence
        is_copied = _is_copied(run, bare)
        (copied if is_copied else own).append(sentence)
        run = run if is_copied else ""
    return (" ".join(own), " ".join(copied)) if own and copied else (text, "")


def _is_copied(sentence: str, agents: Sequence[str]) -> bool:
    """Return True for a sentence that the agent had written."""
    bare = _bare(sentence)
    return len(bare) >= _LEAST_COPIED and any(bare in each for each in agents)


def _bare(text: str) -> str:
    return " ".join(re.findall(r"\w+", text[:_MOST_OF_A_TURN].lower()))


def _facts_of(
    turn: SpokenTurn,
    before: SpokenTurn,
    after: SpokenTurn,
    next_turns: Sequence[SpokenTurn],
    is_first: bool,
) -> Iterator[tuple[str, dict[str, float]]]:
    own = own_text(turn.text)
    uptake = content_terms(after.text[:6_000])
    restated = [
        content_terms(each)
        for each in sentences(after.text[:900])[:2]
        if not _ASKS.search(each[-2:])
    ]
    talks = float(bool(after.text) and not before.calls and not after.calls)
    """Nothing is done between the words of both: they talk something over."""
    exchange = {
        "asked": float(bool(_ASKS.search(before.text[-500:]))),
        "talk": talks,
        "form": float(turn.is_form),
        "first": float(is_first),
        "agreed": min(2.0, count_signs(after.text[:160], "agree")),
        "confirmed": float(any(_is_nod(each.text) for each in next_turns)),
        "share": min(1.0, len(own) / max(1, len(turn.text))),
        "jest": float(
            any(count_signs(each.text[:_REACTION], "jest") for each in (after, *next_turns))
        ),
    }
    listed = sentences(own)
    for place, sentence in enumerate(listed):
        bare = _LONG_QUOTATION.sub(' "" ', sentence)
        is_link = not any(map(str.isalpha, _LINK.sub("", bare)))
        if len(sentence) > LONGEST_SENTENCE or len(bare) < 0.5 * len(sentence) or is_link:
            continue
        terms = content_terms(bare)
        width = len(cjk_run().findall(bare)) * 2 + len(bare.split())
        per = max(1.0, width / 12)
        facts = {name: min(3.0, count_signs(bare, name)) / math.sqrt(per) for name in signs()}
        start = " ".join(bare.split()[:2])
        facts |= {
            **exchange,
            "ever at once": float(bool(_opening("ever").match(bare))),
            "rule": float(bool(_rule_opening().match(bare))),
            "choice at once": float(bool(_opening("choose").match(bare))),
            "note at once": float(bool(_opening("note").match(bare))),
            "quantities": min(3.0, len(_QUANTITY.findall(bare))),
            "manner at once": float(bool(_opening("manner").match(bare))),
            "refuses at once": float(bool(count_signs(start, "refuse"))),
            "task at once": float(bool(count_signs(start, "task"))),
            "question": float(bool(_ASKS.search(bare[-3:]) or _INVERTED.match(bare))),
            "specific": min(2.0, len(_SPECIFIC.findall(bare))),
            "taken up": len(terms & uptake) / max(3, len(terms)),
            "terms": min(3.0, math.log1p(len(terms))),
            "short": float(len(terms) < 2),
            "place": place / max(1, len(listed)),
            "alone": float(len(listed) == 1),
            "colon": float(bare.rstrip().endswith((":", "："))),
        }
        facts |= dict.fromkeys(wordings(bare), 1.0)
        echoes = [len(terms & each) / max(3, len(each)) for each in restated]
        facts["echo"] = max(echoes, default=0.0)
        is_plain = not (facts["question"] or facts["ask"])
        facts |= {
            "answer": talks * exchange["asked"] * is_plain * min(1.0, len(terms) / 2),
            "plain reply": talks * is_plain * min(1.0, len(terms) / 2),
            "taken up in talk": talks * is_plain * facts["taken up"],
            "echo in talk": talks * is_plain * facts["echo"],
            "echo of a number": talks * is_plain * facts["echo"] * min(1.0, facts["specific"]),
            "echo confirmed": talks
            * is_plain
            * min(1.0, 2 * facts["echo"])
            * exchange["confirmed"],
            "specific reply": talks * is_plain * facts["specific"],
            "status in talk": talks * facts["status"],
            "doubt in talk": talks * facts["doubt"],
        }
        yield sentence, facts


def wordings(text: str) -> set[str]:
    """Return the words of a sentence, alone and in pairs.

    Its first and its last word are marked.

    >>> sorted(wordings("Never 30."))
    ['$0', '=0', '=never', '=never 0', '^never']
    """
    found = _WORD.findall(text.lower().replace("’", "'"))[:_MOST_WORDS]
    words = ["0" if each.isdigit() else each for each in found]
    pairs = {f"={first} {second}" for first, second in pairwise(words)}
    ends = {f"^{words[0]}", f"${words[-1]}"} if words else set()
    return {f"={each}" for each in words} | pairs | ends


def _is_nod(text: str) -> bool:
    """Return True for a short assent, such as "right" or "jup"."""
    return len(text) <= 40 and len(text.split()) <= 4 and not _ASKS.search(text)


def names_in(texts: Iterable[str]) -> set[str]:
    """Return the names of code in texts."""
    return {word.strip("`'().,") for text in texts for word in _NAME.findall(text)}
