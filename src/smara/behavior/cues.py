"""List the words that mark a reason, a mistake or a surrender.

In a commit message a reason is a cause that still holds ("because it does not …") or a harm
that is prevented ("to avoid losing …"); other lists mark sentences that are of no use later.
In an agent's words, a sentence may admit a mistake or abandon an approach.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from smara.core.extract import read_cues
from smara.core.startup.regex import re, regex

CUES, _ = read_cues(__file__, "cues.txt")
"""By what reasons, mistakes and habits are recognized."""

_LISTENED = 4_000
_MOST = 12
_AROUND = 400
_LONGEST_SENTENCE = 360
_CODE = regex(r"```.*?(?:```|\Z)", re.DOTALL)
_END = regex(r"(?<=[.!?])\s+(?=[A-Z\"'`(¿¡ÀÂÉÈÊÎÔÛÄÖÜ])|(?<=[。！？])|\n+")


_INNER, _INNER_PART = r"(?:[^.!]|[.!](?=\w))", r"(?:[^.!,]|[.!](?=\w))"


class SpeechCue(NamedTuple):
    """A noticed sentence.

    ``wrong`` and ``right`` are empty where it does not say both.
    """

    kind: Literal["correction", "dead_end"]
    sentence: str
    wrong: str
    right: str
    language: str


Patterns = tuple[tuple[str, re.Pattern[str]], ...]


def _patterns(*patterns: tuple[str, str]) -> Patterns:
    # A point within a name, as in `env.py`, ends no sentence.
    inner = [
        (language, pattern.replace("[^.!]", _INNER).replace("[^.!,]", _INNER_PART))
        for language, pattern in patterns
    ]
    return tuple((language, regex(each, re.IGNORECASE)) for language, each in inner)


_BOTH = _patterns(
    (
        "en",
        r"\bI was wrong (?:about|that) "
        r"(?P<wrong>[^.!]{3,160})[.!:;,—-]+\s*(?P<right>[^.!]{3,160}? (?:is|are|was"
        r"|does|has|uses?)"
        r" (?:actually|in fact|really)\b[^.!]{2,160})",
    ),
    (
        "en",
        r"\bI (?:initially|first|originally|mistakenly|wrongly|incorrectly) (?:thought|assumed"
        r"|believed|expected)"
        r"(?: that)? (?P<wrong>[^.!]{3,160}?),? but (?P<right>[^.!]{3,200})",
    ),
    (
        "en",
        r"\b(?:my (?:earlier|initial|previous|first) assumption (?:that|was that)) "
        r"(?P<wrong>[^.!]{3,160}?)"
        r" (?:was|is) (?:wrong|incorrect|mistaken)[.:;,—-]+\s*(?P<right>[^.!]{3,200})",
    ),
    (
        "en",
        r"\bI (?:was wrong about|misunderstood|misread) "
        r"(?P<wrong>[^.!—–:;]{3,160}?)(?:\s+[—–-]+\s+|[:;]\s+)"
        r"(?P<right>[^.!]{8,200})",
    ),
    (
        "en",
        r"\bactually,? (?P<right>[^.!,]{3,160}?),? (?:and not|not|instead of|rather than) "
        r"(?P<wrong>[^.!]{3,120})",
    ),
    (
        "fr",
        r"\bje (?:pensais|croyais) (?:d'abord "
        r"|au départ )?que (?P<wrong>[^.!]{3,160}?),? mais (?P<right>[^.!]{3,200})",
    ),
    (
        "fr",
        r"\ben fait,? (?P<right>[^.!,]{3,160}?),? (?:et non pas|et non|au lieu de"
        r"|plutôt que) (?P<wrong>[^.!]{3,120})",
    ),
    (
        "de",
        r"\bich (?:dachte|nahm|hatte) (?:zuerst|zunächst|anfangs"
        r"|fälschlicherweise)(?: angenommen)?,? ?(?:an, )?(?:dass )?"
        r"(?P<wrong>[^.!]{3,160}?),? aber (?P<right>[^.!]{3,200})",
    ),
    (
        "de",
        r"\btatsächlich (?P<right>[^.!,]{3,160}?),? (?:und nicht|nicht mehr|statt|anstatt) "
        r"(?P<wrong>[^.!]{3,120})",
    ),
    (
        "es",
        r"\b(?:pensé|creía|pensaba|asumí)(?: al principio"
        r"| inicialmente)? que (?P<wrong>[^.!]{3,160}?),? pero (?P<right>[^.!]{3,200})",
    ),
    (
        "es",
        r"\ben realidad,? (?P<right>[^.!,]{3,160}?),? (?:y no|en lugar de|en vez de) "
        r"(?P<wrong>[^.!]{3,120})",
    ),
    (
        "zh",
        r"我(?:之前|一开始|最初|原来|原本)?(?:以为|误以为|认为)(?P<wrong>[^。！？，]{2,80})，?(?:但|但是|其实|可是)"
        r"(?:实际上"
        r"|其实)?(?P<right>[^。！？]{2,120})",
    ),
    ("zh", r"实际上(?:应该)?(?P<right>[^。！？，]{2,80})，?而不是(?P<wrong>[^。！？]{2,80})"),
    (
        "ja",
        r"(?:最初は|当初は)?(?P<wrong>[^。！？、]{2,80})と(?:思って|考えて|勘違いして)い(?:ました"
        r"|た)が、(?P<right>[^。！？]{2,120})",
    ),
    ("ja", r"実際(?:に)?は(?P<wrong>[^。！？、]{2,80})ではなく、?(?P<right>[^。！？]{2,120})"),
)
_HALF = _patterns(
    (
        "en",
        r"\bI was wrong\b|\blet me (?:reconsider|correct (?:myself|that))\b|^correction:|\bI "
        r"misread\b"
        r"|\bmy mistake\b"
        r"|\bI (?:made a mistake|misunderstood)\b|^wait[,.!—-]|^actually,",
    ),
    (
        "fr",
        r"\bje me suis trompée?\b|^correction ?:|\bau temps pour moi\b|\bj'ai mal (?:lu|compris)\b",
    ),
    ("de", r"\bich habe mich (?:geirrt|vertan)\b|^korrektur:|\bmein fehler\b|\bich lag falsch\b"),
    ("es", r"\bme equivoqué\b|^corrección:|\bestaba equivocad[oa]\b|\bmi error\b"),
    ("zh", r"^更正[：:]|我(?:弄|搞|看|理解)错了|我错了"),
    ("ja", r"^訂正[：:]|(?:間違って|勘違いして)い(?:ました|た)|間違えました|私の(?:間違い|誤り)"),
)
_GIVEN_UP = _patterns(
    (
        "en",
        r"\bthis (?:approach|way|method|strategy) (?:won't|will not|cannot|can't|isn't going to"
        r"|is not going to"
        r"|doesn't|does not)"
        r" work\b|\bI(?: need to| have to|'ll| will|'m going to) abandon (?:this|that|the)\b"
        r"|\b(?:let me|let's|I'll|I will|I need to|we need to) try (?:a different|another) "
        r"(?:approach|way"
        r"|strategy)\b"
        r"|\b(?:un|not )available in (?:test|ci|production|this environment|the sandbox)\b|\bthis "
        r"is a dead end\b",
    ),
    (
        "fr",
        r"\bcette (?:approche|méthode|solution) ne (?:marche|marchera|fonctionne|fonctionnera"
        r"|peut) pas\b"
        r"|\bessayons une autre (?:approche|méthode)\b|\bj'abandonne cette (?:approche|piste)\b",
    ),
    (
        "de",
        r"\bdieser (?:ansatz|weg) (?:funktioniert|klappt|wird) (?:so )?nicht\b"
        r"|\bich versuche (?:es mit )?eine[nm] anderen ansatz\b"
        r"|\bdieser ansatz führt nicht weiter\b",
    ),
    (
        "es",
        r"\beste (?:enfoque|método|camino) no (?:funciona|funcionará|sirve)\b"
        r"|\bprobemos (?:con )?otro (?:enfoque|método)\b"
        r"|\babandon(?:o|aré) este enfoque\b",
    ),
    (
        "zh",
        r"这(?:种|个)?(?:方法|方案|思路|办法)(?:行不通|不可行|不行|走不通)|换(?:一种|个|一个)(?:方法|思路|方案"
        r"|办法)",
    ),
    (
        "ja",
        r"この(?:方法|アプローチ|やり方)(?:では|は)(?:うまくいかない|うまくいきません|動かない|動きません|使えない"
        r"|使えません)"
        r"|別の(?:方法|アプローチ)を(?:試|使)",
    ),
)
_SIGNS: tuple[str, ...] = (
    "i was wrong", "ly thought", "ly assumed", "ly believed", "ly expected", "i first ",
    "assumption", "actually",
    "let me reconsider", "let me correct", "correction", "misread", "mistake", "misunderst", "wait",
    "approach",
    "abandon", "dead end", "another way", "different way", "strategy", "this way", "this method",
    "vailable in ",
    "je pensais", "je croyais", "en fait", "trompé", "temps pour moi", "j'ai mal", "approche",
    "cette méthode", "cette solution",
    "autre méthode", "cette piste", "ich dachte", "ich nahm", "ich hatte", "tatsächlich",
    "mich geirrt", "mich vertan",
    "korrektur", "mein fehler", "lag falsch", "ansatz", "dieser weg", "pensé", "creía", "pensaba",
    "asumí",
    "en realidad", "equivoqu",
    "equivoc", "mi error", "enfoque", "este método", "otro método", "este camino",
    "以为", "认为", "实际上", "更正", "错了", "行不通", "不可行", "不行", "走不通", "换一", "换个",
    "思って", "考えて", "勘違い", "実際", "訂正", "間違", "この方法", "アプローチ", "このやり方", "別の方法",  # noqa: E501
)  # fmt: skip
"""Each of the phrases above holds one of these; looking for them is much cheaper than for the
phrases.
"""


def listen(text: str) -> list[SpeechCue]:
    """Return an agent's corrections and surrenders, each once.

    >>> [cue.right for cue in listen("I initially thought it was cached, but `load()` reads the file each time.")]
    ['`load()` reads the file each time']
    """  # noqa: E501
    heard = text[:_LISTENED]
    if "```" in heard:
        heard = _CODE.sub(" ", heard)
    cues = [
        _cue_in(sentence, following)
        for sentence, following in _sentences_with_signs(heard)
        if not CUES["unreal sentence"].search(sentence) and len(sentence) <= 2 * _LONGEST_SENTENCE
    ]
    return [cue for cue in cues if cue is not None]


def _sentences_with_signs(text: str) -> list[tuple[str, str]]:
    """The sentences that hold one of the signs, each with the one behind it; only around signs is
    it looked closely.
    """
    lowered = text.lower()
    if len(lowered) != len(text):  # a few capitals have longer small letters
        lowered = text
    places = {place for sign in _SIGNS if (place := lowered.find(sign)) >= 0}
    places |= {lowered.find(lowered[place : place + 6], place + 6) for place in places}
    found: dict[int, tuple[str, str]] = {}
    for place in sorted(places - {-1})[:_MOST]:
        start = max(0, place - _AROUND)
        window = text[start : place + 2 * _AROUND]
        ends = [0, *(match.end() for match in _END.finditer(window)), *[len(window)] * 3]
        at = max(number for number, end in enumerate(ends[:-2]) if end <= place - start)
        here, behind = window[ends[at] : ends[at + 1]], window[ends[at + 1] : ends[at + 2]]
        found.setdefault(start + ends[at], (here.strip(), behind.strip()))
    return [found[at] for at in sorted(found)]


def _cue_in(sentence: str, following: str) -> SpeechCue | None:
    """Return the correction in a sentence, else the surrender."""
    whole = f"{sentence} {following}"
    for language, pattern in _BOTH:
        match = pattern.search(sentence)
        if match is None and sentence.lower().startswith("i was wrong"):
            match = pattern.search(whole)
        if match:
            wrong, right = (
                match[side].strip().strip(".,;:!。，、").strip() for side in ("wrong", "right")
            )
            words = sentence if match.end() <= len(sentence) else whole
            return SpeechCue("correction", words[:_LONGEST_SENTENCE], wrong, right, language)
    kinds: tuple[tuple[Literal["correction", "dead_end"], Patterns], ...] = (
        ("correction", _HALF),
        ("dead_end", _GIVEN_UP),
    )
    cues = (
        SpeechCue(kind, sentence[:_LONGEST_SENTENCE], "", "", language)
        for kind, patterns in kinds
        for language, pattern in patterns
        if pattern.search(sentence)
    )
    return next(cues, None)
