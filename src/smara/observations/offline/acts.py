"""Classify a person's sentences: request, question, decision, preference, correction.

Small talk without names or numbers is recognized, so that no note is made of it.
"""

from __future__ import annotations

import re
from typing import Literal

from smara.core.extract import word_set
from smara.observations.offline.notes import one_of

Act = Literal[
    "request",
    "question",
    "statement",
    "preference",
    "decision",
    "change",
    "correction",
    "report",
    "outcome",
    "chat",
]

DURABLE: frozenset[Act] = frozenset({"preference", "decision", "change", "correction"})
"""Acts that hold beyond the message they stand in; each becomes a note of its own."""

VERBS = word_set(
    """
    add adjust allow analyze analyse apply approve archive ask assign attach audit backport
    benchmark bring build bump call capture change check choose clarify clean clear clone close
    collapse combine comment commit compare compile complete compute configure connect consider
    continue convert copy correct count cover create cut debug decide define delete demonstrate
    deploy describe design detect develop diagnose disable discard display do document download
    draft drop dump duplicate edit enable encrypt ensure enter estimate evaluate examine execute
    expand explain explore export expose extend extract fetch figure file fill filter find
    finish fix focus follow force format generate get give go google grep group handle help hide
    highlight identify ignore implement import improve include increase inspect install
    integrate introduce investigate isolate keep kill launch let lint list load locate log look
    make map mark measure mention merge migrate minimize mock modify monitor move name normalize
    note open optimize organize outline package parse paste patch perform pick plan polish port
    post prepare present print prioritize profile propose provide publish pull push put queue
    raise read rebase rebuild recommend record redo reduce refactor refine regenerate release
    reload remind remove rename render reorder reorganize replace report reproduce rerun
    research reset resolve respond restart restore restructure retry return reuse revert review
    rewrite roll rollback run save scaffold scan schedule search see select send separate
    serialize set setup share ship shorten show simplify skip solve sort specify spin split
    squash stage start stop store streamline stub submit suggest summarise summarize support
    suppress switch sync tackle tag take teach tell test think throw tidy toggle track train
    transform translate trim try tune turn undo unify uninstall update upgrade upload use
    validate verify view visualize walk watch websearch wire work wrap write
    """
)
_QUESTION_OPENING = re.compile(
    r"(?:what|why|how|when|where|who|whom|whose|which|is|are|was|were|am|does|do|did|can|could"
    r"|should|shall|would|will|has|have|had|isn't|aren't|doesn't|don't you|didn't|won't|any)\b"
)
_ASKS_TO_DO = one_of(
    r"(?:can|could|would|will) (?:you|u)\b|(?:can|could|shall) we\b",
    r"(?:would you mind|why don't (?:you|we|u|i)|why not|how about|please|pls|plz|kindly|let's"
    r"|lets|let us)\b",
    r"i(?:'d| would) like (?:you )?to\b",
    r"i (?:want|need) (?:you to|to (?:see|have|get|be able)|a|an|the|this|that|it)\b",
    r"we (?:need|want|should)\b",
    r"you (?:should|need to|must|can|have to)\b|(?:go ahead|make sure|be sure|go on and|time to)\b",
)
_ASKS_INSIDE = re.compile(r"\b(?:(?:can|could|would|will) (?:you|u)|please|pls)\b")
_ASKS_TO_TELL = one_of(
    r"(?:(?:can|could|would|will) (?:you|u) )?(?:please )?(?:explain|clarify|describe|elaborate)\b",
    r"(?:can|could|would|will) (?:you|u) (?:please )?tell\b(?! me (?:when|once|as soon))",
    r"(?:(?:can|could|would|will) (?:you|u) )?(?:please )?(?:tell|remind|show|walk) (?:me|us)(?: "
    r"again)?(?: through)? "
    r"(?:what|why|how|where|which|who|whose|whether|if|about|the (?:difference|reason))\b",
)
_WONDERS = one_of(
    r"(?:i(?:'m| am)? |just |still )*(?:wonder(?:ing)?|curious|not sure|unsure|don't (?:know"
    r"|understand|get|see))(?: about)? (?:why|how|what|whether|if|which|where|when|who)\b",
    r"(?:i|we)(?:'d| would)? (?:like|want|need|love) to (?:know|understand)\b",
    r"(?:any (?:idea|clue|thoughts?)|no idea|do you (?:know|remember|think))\b",
)
_REPORT = one_of(
    r"\b(?:(?:does|do|did|is|are)(?:n't| not)|won't|can't|cannot) (?:work|working|load|loading"
    r"|compile|build|start|run|running|render|show|pass|connect|respond|fire|scroll)",
    r"\b(?:is|are|was|got|it's|seems?) (?:broken|failing|crash\w{0,6}|stuck|down|blocked|slow"
    r"|wrong)",
    r"\b(?:fails|crashes|hangs|errors out|throws|times out|blocks)\b|\bblocked (?:by|on)\b",
    r"\b(?:i|we) (?:get|got|see|am getting|are getting|keep getting)\b.{0,40}"
    r"\b(?:error|exception|failure|warning|\d{3})",
    r"\bbug\b.{0,40}\b(?:is|in|when)\b",
)
_BROKE = re.compile(
    r"\bstopped (?:working|responding|charging|loading|starting|heating|cooling|printing|syncing"
    r"|sending|ringing)\b"
)
_TROUBLE = (
    r"(?:crash|fail|hang|leak|error|throw|break|broken|freez|flicker|happen|occur|hurt"
    r"|stuck)\w{0,6}\b"
)
_ENDED_TROUBLE = one_of(
    rf"\bno longer (?:\w{{1,12}} )?{_TROUBLE}",
    rf"\b(?:does|is|are|has|have|did)(?:n't| not) (?:\w{{1,12}} )?{_TROUBLE}.{{0,40}}\b(?:any "
    r"?more|since)\b",
)
_TROUBLE_NAMED = re.compile(
    r"\b(?:errors?|problems?|trouble|issues?|leak(?:s|ing|y)?|broken|fault(?:y)?|bugs?|pain|hurts?"
    r"|stuck|noise|crash(?:es)?)\b"
)
_OUTCOME = one_of(
    r"\b(?:works?|working|runs?|running|loads?|builds?|starts?|passes|passing|compiles|prints"
    r"|charges|online|up|back)\b"
    r".{0,16}\b(?:again|now|fine|perfectly|at last|finally|as expected|like a charm)\b",
    r"\b(?:now|finally) (?:works?|runs?|loads?|builds?|starts?|passes|compiles)\b",
    r"\b(?:solved|fixed|resolved|cured|sorted|cleared|settled|repaired|stopped|saved|mended"
    r"|unblocked) (?:it|that|this|them|everything|(?:the|my|our) \w+)(?: \w+){0,3}$",
    r"\b(?:did the trick|made the difference|paid off|worked out|came out|turned out|fell "
    r"through)\b",
    r"\bwent (?:well|wrong|fine)\b",
    r"\b(?:is|are|was|were|got|been|all|now) (?:all |now |finally |completely )?(?:solved|fixed"
    r"|resolved|cured|sorted|settled|repaired|mended|healed|gone|over|finished|completed?|done"
    r"|ready|approved|accepted|rejected|confirmed|canceled|cancelled|merged|deployed|shipped"
    r"|released|delivered|paid)\b|\bthe (?:cause|culprit|problem|reason|fix|solution|cure|answer"
    r"|trick|root cause) (?:was|is|turned out)\b|\b(?:problem|issue|case|mystery) solved\b|^(?:it"
    r"|that|this) (?:worked|helped)\b|\b(?:worked|helped)[.!]*$",
)
_OPEN_STILL = re.compile(
    r"\b(?:not|never|no one|nobody|nothing|hardly|once|until|unless|if|when|whether|before|should"
    r"|must|may|might|could|would|will|hope|hopefully|wish|want|need|try|trying|make sure|almost"
    r"|nearly|supposed|yet|still|why)\b|n't\b"
)
CURE = one_of(
    r"\b(?:solved|fixed|resolved|cured|sorted|cleared|repaired|mended|unblocked|did the trick"
    r"|helped|worked|stopped)\b",
    r"\bthe (?:cause|culprit|reason|fix|solution|cure|trick|root cause)\b|\bturned out\b",
)
"""The words of an outcome that say what brought it about."""
_STATEMENT = re.compile(
    r"(?:i|i'm|i've|i'd|i'll|we|we're|we've|we'll|my|our|he|she|they|his|her|their|it|it's|this"
    r"|these|those|that|that's|there|there's|the|a|an|fyi|note|btw|by the way|just|also|here"
    r"|because|since|main|one|all|some|both|so|but|and)\b"
)
_HAS_VERB = re.compile(
    r"\b(?:is|are|was|were|am|be|been|has|have|had|uses?|used|lives?|runs?|needs?|wants?|works?"
    r"|worked|'s|'re|'m|'ve|does|did|do|can|will|should|must|goes|went|got|gets?|made|makes?|bought"
    r"|said|says|thinks?|means?|contains?|expects?|takes?|took|returns?|supports?|comes?|came"
    r"|\w{3,20}ed|\w{3,20}ing)\b"
)
_SUBJECT_AND_VERB = one_of(  # "It reads every row", "The worker reads every row"
    r"^(?:it|he|she|they|we|i|there|which|nobody|everybody|someone) [a-z']{2,}\b",
    r"^(?:the|a|an|our|my|their|its|his|her|each|every|this|that) (?:[\w./-]+ ){1,4}?[a-z]{2,}s"
    r" (?:the|a|an|every|all|each|both|on|from|to|with|by|as|when|only|too|no|its|their|our|my"
    r"|\d+)\b",
)
_CHAT = re.compile(
    r"(?:ok(?:ay)?|k|yes|yep|yeah|yup|no|nope|thanks?|thank you|thx|ty|great|good|nice|cool"
    r"|perfect|awesome|sure|fine"
    r"|right|done|continue|go|go on|go ahead|proceed|next|carry on|keep going|resume|hi|hello|hey"
    r"|bye|lol|hm+|wow"
    r"|please|please continue"
    r"|sounds good|looks good|got it|i see|makes sense|ready|start|merci|oui|non|d'accord|danke"
    r"|ja|nein"
    r"|weiter|gracias|sí|si|vale|ok merci|好|好的|谢谢|继续|可以|嗯|はい|ありがとう|続けて|네|감사합니다|계속|да|нет"  # noqa: E501
    r"|спасибо)(?:[\s,]{1,3}(?:ok|yes|yep|thanks?|thank you|great|good|please|so much|very much"
    r"|a lot|again|man|then|now|it|sir|work|job|idea|everyone|all)){0,6}[\s.!,…]{0,10}"
)
_GREETING = re.compile(
    r"(?:thanks|thank you|hi|hey|hello|cool|great|nice|bye|congrats|wow)[ "
    r",]{1,3}[a-z]{1,20}[\s.!,]{0,9}"
)
_OPENING = re.compile(
    r"(?:(?:hey|hi|hello|ok(?:ay)?|so|well|thanks|great|good|cool|nice|perfect|alright|yes|yeah|now"
    r"|then|also|next|first|and|but|btw|by the way)[,.!: ]{1,4}){1,3}(?=\w)"
)
_LATER = re.compile(r"[;:—–] (?:please |then |so )?([a-z]{2,12})\b|\bplease ([a-z]{2,12})\b")
# An English sentence has at least so many plain letters; "naïve café" happens.
_ENGLISH = 0.97
_FOREIGN: tuple[tuple[Act, re.Pattern[str]], ...] = (
    (
        "preference",
        one_of(
            r"je préfère|j'aime|je n'aime pas|\btoujours\b|\bjamais\b|ich bevorzuge|ich mag"
            r"|\bimmer\b|niemals|prefiero",
            r"me gusta|\bsiempre\b|\bnunca\b|я предпочитаю|всегда|никогда",
            r"我喜欢|我更喜欢|偏好|总是|永远不要|以后都|請不要|不要用|好きです|好みます|いつも|必ず|선호|좋아|항상",
        ),
    ),
    (
        "change",
        one_of(
            r"\bne .{1,40} plus\b|nous sommes passés|remplacé|nicht mehr|umgestiegen|gewechselt"
            r"|ersetzt|\bya no\b",
            r"cambiamos|больше не|перешли|改用|换成|不再|迁移到|やめて|に変更|に移行|더 이상|바꿨",
        ),
    ),
    (
        "decision",
        one_of(
            r"on a décidé|j'ai décidé|nous avons décidé|wir haben entschieden|ich habe "
            r"entschieden|decidimos|решили",
            r"决定|就用|決めた|決定|하기로",
        ),
    ),
)


def sort(sentence: str, is_coding: bool = True) -> Act:
    """Return what a person does with a sentence."""
    text = _folded(sentence)
    if _CHAT.fullmatch(text) or _GREETING.fullmatch(text):
        return "chat"
    if opening := _OPENING.match(text):
        text = text[opening.end() :]
    if (foreign := _foreign_act(text)) is not None:
        return foreign
    is_question = text.rstrip("\"')] ").endswith(("?", "？"))
    if not is_question:
        for act, pattern in _LASTING_ACTS:
            if pattern.search(text):
                return act
    first = re.split(r"[^a-z']", text, maxsplit=1)[0]
    wants_words = bool(_ASKS_TO_TELL.match(text) or _WONDERS.match(text))
    if _ASKS_TO_DO.match(text):
        # "We need a migration for this?" asks; with "can you" in it, it requests after all.
        is_wish = not text.startswith(("we ", "i ", "you "))
        is_request = not is_question or is_wish or bool(_ASKS_INSIDE.search(text))
    else:
        # "main was clean; fix the issues" asks in its second half.
        later = any((match[1] or match[2]) in VERBS for match in _LATER.finditer(text))
        is_request = later or (first in VERBS and not is_question)
    if is_request and not wants_words:
        return "request"
    if is_question or wants_words or (_QUESTION_OPENING.match(text) and first not in VERBS):
        return "question"
    if is_outcome(text):
        return "outcome"
    if _REPORT.search(text):
        return "report"
    is_statement = (
        not is_coding
        or (_STATEMENT.match(text) and _HAS_VERB.search(text))
        or _SUBJECT_AND_VERB.match(text)
        or (text.isascii() and text.count(" ") >= 3 and _HAS_VERB.search(text))
    )
    return "statement" if is_statement else "request"


def _folded(sentence: str) -> str:
    return sentence.strip().lower().replace("’", "'")[:400]


def is_outcome(sentence: str) -> bool:
    """Return True if a sentence says how something came out."""
    text = _folded(sentence)
    if _ENDED_TROUBLE.search(text):
        return True
    return bool(_OUTCOME.search(text.rstrip(" .!"))) and not _OPEN_STILL.search(text)


def is_trouble(sentence: str) -> bool:
    """Return True if a sentence tells of trouble."""
    text = _folded(sentence)
    return any(pattern.search(text) for pattern in (_BROKE, _REPORT, _TROUBLE_NAMED))


def _foreign_act(text: str) -> Act | None:
    """The act of a sentence in another language; None when it may be English."""
    letters = (
        [] if text.isascii() else [character for character in text[:120] if character.isalpha()]
    )
    is_foreign = sum(map(str.isascii, letters)) < _ENGLISH * len(letters)
    if text.rstrip("\"')] ").endswith(("?", "？", "吗", "か。", "呢")):
        return "question" if is_foreign else None
    return next(
        (act for act, pattern in _FOREIGN if pattern.search(text)),
        "request" if is_foreign else None,
    )


_LASTING_ACTS: tuple[tuple[Act, re.Pattern[str]], ...] = (
    ("report", _BROKE),
    ("outcome", _ENDED_TROUBLE),
    (
        "correction",
        one_of(
            r"^(?:no[,.! ]|nope\b|wrong\b|actually[, ]|not (?:that|this|quite|like))",
            r"^that(?:'s| is)(?: not|n't)? (?:wrong|incorrect|right|what|true|not)",
            r"^(?:i meant|i said|stop|undo)\b|^wait[, ]|^sorry,? i",
            r"^you (?:forgot|missed|misunderstood|broke|didn't|did not|were supposed"
            r"|removed|deleted)",
        ),
    ),
    (
        "decision",
        one_of(
            r"\b(?:i|we)(?:'ve| have)? (?:decided|agreed|chose|chosen|settled|picked)\b",
            r"\b(?:i|we)(?:'ll| will| would)? (?:go|stick|stay) with\b",
            r"\blet's (?:go with|use|stick|do it|keep|drop)\b",
            r"^(?:go with|option \w+|approved?\b|lgtm|ship it|do it"
            r"|yes,? (?:go|do|please|use|let))",
            r"\bdecision\b.{0,20}:|\b(?:approved|signed off)\b|\bi think i'll\b"
            r"|\bthe (?:plan|decision) is\b",
        ),
    ),
    (
        "change",
        one_of(
            r"\b(?:switch(?:ed|ing)?|migrat(?:e|ed|ing)|mov(?:ed|ing)|chang(?:ed|ing)|convert(?:ed"
            r"|ing)|renam(?:ed|ing)|upgrad(?:ed|ing)|went|going)\b.{0,60}\bfrom\b.{1,60}\bto\b",
            r"\breplac(?:ed|ing)\b.{1,80}\b(?:with|by)\b",
            r"\bno longer\b|\bnot .{1,30} any ?more\b|\bstopped \w{2,20}ing\b",
            r"\b(?:dropped|removed|retired|deprecated|abandoned|got rid of)\b",
            r"\binstead of\b|\b(?:switched|moved) to\b|\brenamed\b",
            r"\b(?:i|we|he|she|they|it) used to\b",
        ),
    ),
    (
        "preference",
        one_of(
            r"\b(?:i|we) (?:(?:really|strongly|usually|generally|always|much) )?"
            r"(?:prefer|like|love|enjoy|hate|dislike|can't stand)\b",
            r"\b(?:i|we)(?:'d| would) (?:much |really )?(?:rather|prefer)\b",
            r"\b(?:i|we) (?:always|never|don't (?:like|want|use|do))\b",
            r"\bmy (?:favou?rite|preference|preferred)\b",
            r"\bfrom now on\b|\bin (?:the )?future\b",
            r"^(?:please |pls )?(?:always|never|do not|don't|dont|avoid|stick (?:to|with)"
            r"|no more)\b|^(?:please )?use\b.{1,80}(?:, not\b|\binstead of\b|\brather than\b)"
            r"|\bmust (?:not|never|always)\b|\bshould (?:never|always)\b|\bwe(?: use|'re using)\b"
            r"|\bour (?:convention|policy|standard|rule|style)\b"
            r"|\bi'm (?:more of )?an? .{1,30} person\b",
        ),
    ),
)
_UP_TO_A_PAUSE = r"(?:[.,;!]|$| (?:and|but|any|in|from|for|since|because)\b)"
_REPLACED = (
    re.compile(r"\bfrom (.{1,60}?) to\b", re.IGNORECASE),
    re.compile(r"\breplac(?:ed|ing) (.{1,60}?) (?:with|by)\b", re.IGNORECASE),
    re.compile(
        r"\b(?:no longer|stopped|don't|not) (?:use|using|on|with|work(?:ing)? with) "
        rf"(.{{1,60}}?){_UP_TO_A_PAUSE}",
        re.IGNORECASE,
    ),
    re.compile(
        r"\b(?:instead of|rather than|got rid of|dropped|removed|retired|deprecated) (?:the )?"
        rf"(.{{1,60}}?){_UP_TO_A_PAUSE}",
        re.IGNORECASE,
    ),
)


def replaced_by(sentence: str) -> str:
    """Return what a change ends: "from Redux to Zustand" → Redux."""
    for pattern in _REPLACED:
        if (match := pattern.search(sentence[:600])) and match[1].strip():
            return match[1].strip()
    return ""


_PERSONAL = re.compile(
    r"\b(?:i|i'm|i've|i'd|i'll|my|mine|me|we|we're|we've|we'll|our|ours|us)\b", re.IGNORECASE
)
NAMES_OR_NUMBERS = re.compile(r"\d|(?<=[a-z,;] )[A-Z][a-z]|[^\x00-\x7f]{2}")
_OWN_DOING = one_of(  # "Just signed up for a class": the speaker is left out
    r"(?:just|gonna|haven't|hasn't|tried|went|got|started|been|had|btw,?|currently|planning"
    r"|working|thinking)\b",
    r"(?:bought|made|the goal|mostly)\b",
    r"\[image",
)
_REACTION = one_of(
    r"(?:that|it|this|those|they|you|sounds?|looks?|wow|aww?|cool|great|awesome|nice|yeah|yes"
    r"|totally|absolutely)\b",
    r"(?:glad|happy|so|what an?|congrats|can't wait|good luck|take care|keep|hope|no problem"
    r"|definitely|amazing)\b",
    r"(?:interesting|cheers|haha|ha|wonderful|fantastic|agreed|gotcha|same here|me too)\b",
)
_SHORT = 80
_WORD = re.compile(r"[A-Za-z][\w'’-]{0,40}")
_EMPTY = word_set(
    """
    a about absolutely agreed all also always an and any are as at awesome be been but by can
    could cool did do does exactly fine for from get gets good got great had has have he her
    here him his how if in interesting is it its just kind like lol lot lots makes many maybe
    much nice no not of off oh ok okay on one or out perfect perhaps pretty probably quite
    rather really right same sense she so some something sounds such sure than thanks that
    that's the their them then there these they thing things this those to too true up very was
    way well were what when where which while who why will with wow would yeah yes you your
    """
)
_FEW = 2


def is_telling(sentence: str) -> bool:
    """Return True if a sentence holds a fact, not a reaction.

    A reaction does not, and neither do words that could be said of anything.
    """
    if NAMES_OR_NUMBERS.search(sentence) or _OWN_DOING.match(sentence) or is_outcome(sentence):
        return True
    if _REACTION.match(sentence) and len(sentence) < _SHORT:
        return False
    is_about = sum(word.lower() not in _EMPTY for word in _WORD.findall(sentence[:400])) > _FEW
    return is_about or bool(_PERSONAL.search(sentence))
