"""List the words that mark a reason, a mistake or a surrender.

In a commit message a reason is a cause that still holds ("because it does not …") or a harm
that is prevented ("to avoid losing …"); other lists mark sentences that are of no use later.
In an agent's words, a sentence may admit a mistake or abandon an approach.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from smara.core.startup.regex import re, regex


def _words(*alternatives: str) -> re.Pattern[str]:
    return regex("|".join(alternatives), re.IGNORECASE)


CAUSE = _words(
    r"(?<!if )(?<!^)\botherwise\b(?=[^);]{0,100}(?:\b(?:fail|break|los[et]|crash|leak|stay|filter"
    r"|hang|corrupt|empty"
    r"|wrong|never|would|could|may|might|not|cannot)|n't\b))",
    r"\bso that [^.]*\b(?:not|\w+n't|never|without|cannot|no longer|only|always|even)\b",
    r"\b(?:does not|doesn't|do not|don't|cannot|can't|has no|have no|is not|isn't)\b[^.;]{3,160}, "
    r"so (?!that\b)",
    r"\b(?:because|decided (?:to|against|on|that)|must not|must never)\b",
    r"(?<!ever )(?<!existed )\bsince (?:it|this|that|they|we|there|some)\b",
    r"(?<!ever )(?<!existed )\bsince (?:the|a|an) (?!(?:given|last|previous|first|start|beginning"
    r"|introduction"
    r"|release)\b)",
    r"\bsince .{3,60} (?:is|are|does|do|cannot|can't)\b",
    r"(?:, as|\bas (?:it|this|that|they|the|we|there)) .{0,40}(?:\w+n't|\b(?:cannot|does not|do "
    r"not|is not|are not))\b",
    r"(?<!\ba )\b(?<!line )breaks? (?:when|if|on)\b|\bwhich (?:breaks|crashes|silently|corrupts"
    r"|leaks)\b",
)
"""Why something is as it is, or what goes wrong otherwise. *Instead of* alone only says what was
done.
"""
AIM = _words(
    r"\bto (?:avoid|prevent)\b(?=.{0,80}\b(?:los(?:s|t|ing|e)|leak|crash|hang|race|deadlock"
    r"|corrupt|inject|travers"
    r"|panic|stale|collision|inherit|exhaust|stuck|double|conflict|silent|wrong|orphan|drop|expos"
    r"|infinite|truncat"
    r"|out of memory|oom\b|escap|bypass|spoof|dos\b|denial|unrecoverable|fail|recurs|block|rate "
    r"limit|precision|starv"
    r"|mismatch|out of order|interfer|segfault|segv|undefined|unbounded|quadratic|O\(|rows"
    r"|invalid|missing|break"
    r"|(?:stack|buffer|integer|precision|window|memory|heap) overflow|attacker|malicious|clobber"
    r"|overwrit|reentran"
    r"|flood|loop|garbage collect|use after|dangling|never shown))",
    r"\b(?:must|never|always|should|does(?:n't| not)|do(?:n't| not)|cannot|can't) .{0,80}\bto "
    r"(?:avoid|prevent) "
    r"(?!(?:issues?|problems?|confusion|errors?|surprises?|bugs?|using|having|adding|creating|the "
    r"need|needing)\b)",
)
"""Which harm a thing is there to prevent. *To avoid issues*, or how a page looks, says nothing
later.
"""
DAMAGE = _words(
    r"\b(?:causes|caused|leads|led|resulted|results) (?:to|in|a|an|the|\w+ing)\b|\bdue to\b",
    r"\b(?:breaks?|broke|crash(?:es|ed|ing)?|deadlocks?|races?|leak(?:s|ed|ing)?|corrupt\w*"
    r"|silently)\b",
    r"\b(?:vulnerab\w+|denial|data loss|quadratic|exponential (?!backoff)\w+)\b",
)
"""What went wrong: a reason to take a change back."""
LASTING = _words(
    r"\b(?:does|do|is|are|ca|wo|must|should|may|has|have)(?:n't| not)\b|\b(?:cannot|can't|won't"
    r"|must|never|always)\b",
    r"\b(?:otherwise|requires?|needs?|unreliable|unavailable|decided|so that|breaks?|fails?"
    r"|silently|no way|has no)\b",
    r"\b(?:leaks?|crash(?:es)?|hangs?|corrupts?|loses|nobody|nothing)\b",
)
"""What is still so after the change."""
RULE = _words(
    r"\b(?:must|should|shall|never|always|needs? to|have to|has to|so that(?! is| was)"
    r"|to (?:avoid|prevent)(?! the need| having)"
    r"|otherwise|intentionally|deliberately|on purpose|by design|decided|not safe|unsafe"
    r"|breaks? (?:when|if|on))\b",
    r"\b(?:shouldn't|mustn't)\b|(?:^|[.;:,—–] )(?:do not|don't|avoid)\b",
)
"""What shall be so. A cause alone may be that of the fault which the change has ended."""
FIRM = _words(r"\b(?:because|otherwise|must not|must never|decided)\b")
"""The words of a cause that leave no doubt."""
NOW = _words(
    r"\b(?:old|previous|current) (?:code|behaviou?r|version|implementation|logic)\b",
    r"\b(?:now|no longer|we can|there is no need|simplif\w+|currently|formaliz\w*)\b",
)
"""What the change does, or was before it; with these words a reason must be firm."""
ENDED = _words(
    r"\b(?:currently|today|right now|as of now|until now|so far|at present)\b[^.;]{0,60}\b(?:fail"
    r"|break|crash|hang|leak"
    r"|los|ignor|drop|miss|cannot|can't|(?:does|do|is|are) ?n[o']t)",
    r"\b(?:fails?|breaks?|crash(?:es)?|hangs?|is broken|does nothing) (?:today|currently|right "
    r"now|at present)\b",
    r"\b(?:th(?:is|e) (?:bug|problem|issue|crash)|the (?:original|current)|as we do)\b",
    r"\b(?:does|do)(?: not|n't) need\b|\bbecause now\b",
    r"(?:n't|\bnot) (?:properly|correctly)\b|\b(?:incorrectly|previously)\b|\bwould (?:always"
    r"|never|still|sometimes)\b",
    r"\b(?:previous|old|former) (?:code|behaviou?r|version|implementation|logic|approach|method)\b",
    r"(?<!\bis )(?<!\bare )(?<!\bbe )(?<!\bbeing )(?<!\bgets )(?<!\bget )\bsilently \w+ed\b",
)
"""A fault that the change itself has ended, told as if it were still there."""
TRAP = _words(
    r"\b(?:breaks?|broke|crash\w*|fail(?:s|ed|ing|ure)?|deadlock\w*|race|leak\w*|hangs?"
    r"|corrupt\w*|silently)\b",
    r"\b(?:must (?:not|never)|never|regress\w*|raise[sd]?|\w*errors?|vulnerab\w+|denial|bug|data "
    r"loss|quadratic)\b",
    r"\b(?:wrong(?:ly)?|incorrect(?:ly)?|unexpected(?:ly)?)\b",
)
CHOICE = _words(r"\b(?:decided|instead of|in favou?r of|rather than|chose|prefer\w*)\b")

PAST = _words(
    r"\b(?:was|were|wasn't|weren't|had|hadn't|did|didn't|couldn't|previously|used to|went|got"
    r"|became|meant|broke|led"
    r"|lost|kept|left)\b",
    r"\b(?:caused|failed|worked|crashed|resulted|masked|leaked|returned|raised|made|ran|took|gave"
    r"|[a-z]{3,}ed (?:because|due|since|when|by|the|to))\b",
)
PRESENT = _words(
    r"\b(?:is|are|isn't|aren't|does|doesn't|do|don't|can|can't|cannot|must|will|won't|has|have"
    r"|needs?|requires?)\b",
    r"\b(?:may|might|should|breaks|fails?|crash(?:es)?|causes|leads|returns|raises|supports?"
    r"|expects?|uses?|allows?"
    r"|means?|wants?)\b",
    r"\b(?:becomes?|remains?|keeps?|stays?|treats?|reads?|writes?|runs?|comes?|gives?|takes?"
    r"|makes?|sees?|holds?"
    r"|ignores?)\b",
)
"""What is still so. A sentence in the past alone tells of a fault that is gone."""
HAPPENED = _words(
    r"\b(?:was|were|wasn't|weren't|had|hadn't|did|didn't|would|wouldn't|could(?:n't)?) "
    r"(?!decided|agreed|chosen)",
    r"\b(?:broke|came|drew|fell|froze|gave|got|grew|hung|kept|knew|led|left|lost|meant|ran|saw"
    r"|stood|stuck|threw|took|went|wrote)\b",
    r"\b(?:it|they|that|which|this|and|but|otherwise|never|also|still|silently|then) [a-z]{3,}ed\b",
    r"(?<!\bis )(?<!\bare )(?<!\bbe )(?<!been )(?<!being )(?<!\bget )(?<!\bnot )(?<!gets )(?<=\w )"
    r"(?!need|exceed|proceed|succeed|feed|embed|speed|shared|based|used|called)[a-z]{3,}ed "
    r"(?:an?|the|its|their|two|no|every|all|against|before|into|itself|out|because)\b",
    r"\bused to be\b",
)
"""What happened once, told by a verb behind its subject. At the start of a sentence it tells what
the change did.
"""
UNREAL = _words(
    r"\b(?:could|would|did|to)(?:n't| not)? (?:\w+ly )?\w+", r"\"[^\"]{1,200}\"|“[^”]{1,200}”"
)
"""What could or would be, or what somebody said, is no present, though its verb looks like one."""

OPENING = _words(
    r"^(?:\(|\[[ x]\]|(?-i:[a-z][\w./-]*)(?:\([^)]*\))?!?: |thanks|thank you|see|could|fixing"
    r"|adding|in such)",
    r"^note (?:that|to)\b",
    r"^(?:other |no need|ideally|technically|after this|in favou?r of|looking at|no (?:new "
    r")?tests?\b|todo|fixme|oops)",
    r"^(?:we (?:also|now|can|could|might)|this (?:commit|patch|change|pr) (?:does|do|is|has"
    r"|only)\b|co-authored)",
    r"^this (?:commit|patch|change|pr) (?:also )?(?:makes|adds|fixes|updates|ensures|introduces"
    r"|moves|wraps|allows)\b",
    r"^problem: |^(?:this|it|that) (?:occur|happen)(?:s|ed)\b|^(?:this|it|that) (?:is|was) "
    r"(?:caused|because)\b",
    r"^(?:this|that|it) (?:results? in|causes|leads to)\b",
    r"^this (?:also )?(?:handles|fixes|adds|changes|makes|moves|removes|introduces|updates|is "
    r"fine)\b",
    r"^(?:this|it) (?:also )?(?:removes|replaces|supersedes|reverts|implements|extends|allows)\b",
    r"^(?:currently|today)\b|^fix(?:e[sd])?: |^address(?:es|ed|ing)? ",
    r"^(?:trying to|p\.s\.)",
    r"^(?:reported|reviewed|tested|based on|credit|patch by|hopefully|sorry|maybe|perhaps|not "
    r"sure)\b",
    r"^(?:tests? |document |it appears|strictly speaking|in practice|discovered|found|as reported "
    r"by|verified"
    r"|follow[- ]up)\b",
    r"^(?:enhanc|improv|ensur)(?:e|ed|es|ing)\b|^with (?:the|this) (?:fix|change|patch)\b",
    r"^(?:remaining|unfortunately|actually|problem with|the (?:solution|problem|fix|patch|bug"
    r"|purpose|defect|issue)"
    r"|if |includes?|later|now)\b|\b(?:and|or|with|the|to)\.$",
    # Half a sentence, whose beginning stood in a line that was left out.
    r"^(?-i:[a-z]+)(?=[ ,;])",
    r"^(?:also|but|and|or|which|however|then|so|yet|still)\b",
    r"\b(?-i:I)\b(?!/)|\b(?:my|me|let's|myself)\b|(?:\.\.\.|…)$",
)
"""How sentences begin that are said to reviewers, of the author, or that are halves."""
WORK = _words(
    r"\b(?:hover|tooltips?|padding|flicker\w*|layout|spacing|styl(?:e|es|ing)|scrollbars?|css"
    r"|colou?rs?|fonts?"
    r"|animations?|warnings)\b",
    r"\b(?:fixme|\w+ test in the)\b|\bP[0-3]\)",
    r"\b(?:risks? (?:is|are)|test-only|still being|narrowly scoped|no (?:behaviou?r|functional) "
    r"change"
    r"|(?:manual(?:ly)?|mutation)[ -](?:test|verif)\w*)\b",
    r"\b(?:disregard|tests? (?:fail\w*|were|was|is|are|added|case|suite|coverage)|unit tests?"
    r"|regression tests?|tests"
    r"|bench(?:es|marks?)?)\b",
    # What is said to calm those who review it, or held to be so.
    r"(?:n't|\bnot) affect(?:ed)?\b|\b(?:unaffected|as before|as-is|unchanged|identical|stays? "
    r"the same|no harm"
    r"|seems?|nice)\b",
    r"\b(?:could offer|would be (?:nice|good)|typescript|type (?:errors?|defs?|definitions?))\b",
    r"\bpython (?:2|3\.[0-9])\b",
    r"\b(?:pull request|this pr|the pr|rebased?|squash|reviewers?|review comments?|code review"
    r"|review (?:feedback"
    r"|finding)|bugbot|copilot|coderabbit|greptile)\b",
    r"\b(?:round \d|e2e tests?|test \d|acceptance criteria|in scope|spec(?:ification)? requires"
    r"|pre-(?:push|commit))\b",
    r"\b(?:typo|flake8|pylint|mypy|linter|isort|pep ?8|changelog|release notes|travis|appveyor"
    r"|codecov|coverage)\b",
    r"\b(?:golangci\w*|staticcheck|eslint|ruff|nolint|clippy|prettier|biome|phpstan|psalm"
    r"|max-lines|tsc|typecheck\w*"
    r"|sonar\w*)\b",
    r"\b(?:dependabot|ci|refactor\w*|clean ?ups?|tidy|semver\w*|backport\w*|cosmetic|spelling"
    r"|readab\w+|cleaner"
    r"|boilerplate)\b",
    r"\b(?:duplicat(?:ed|ion|ing)|repeated|re-?us(?:e|ed|es|ing)|extra|unused|redundan\w+"
    r"|unnecessary|needless|churn"
    r"|magic (?:number|string)s?|false positives?)\b",
    r"\b(?:import cycles?|circular imports?|shadowing|naming|nits?)\b",
    r"\b(?:soon|tests? (?:would|will|could)|little bit|weird|for now|at the moment|work in "
    r"progress|room for)\b",
    r"\b(?:future work|further improvements|follow-up|typeshed|stubs|translat\w+|localiz\w+)\b",
    r"\bwill (?:exist|be (?:added|moved|removed|done|addressed|fixed))\b",
    r"\bthis (?:change|patch|pr) (?:is|does|has|should)\b",
    r"\b(?:user-(?:visible|facing)|(?:existing|an?|deleted|removed) tests?|smoother transition)\b",
    r"\b(?:is (?:perfectly |still )?safe|not be a problem|impacted|continues? (?:to work"
    r"|working))\b",
    r"\b(?-i:[A-Z]{1,4}\d{3,4}): ",
    r"\b(?:out of scope|logic above|pretty (?:bad|much)|this adds|likely missed|better word|going "
    r"to)\b",
    r"\bto reduce dup\w+",
    r"\b(?:while (?:working|looking|investigating|debugging)|code duplication|easier to read|more "
    r"readabl[ey])\b",
    r"\b(?:consisten(?:t|cy)|apparently|presumably|bc (?:compatible|break)|-?werror|breaks? the "
    r"build|reformat\w*)\b",
    r"\b(?:compiler|deprecation|type checker|sanitizer)s? (?:warnings?|complain\w*)\b",
)
"""What is about the work on the code, how it was checked, or how a page looks."""
EARLIER = _words(
    r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,40}\b|\b[0-9]{9,40}\b",
    r"\b(?:previous|last|earlier|this|next) commit\b",
    r"\b(?:in|by|since|from|after|before|supersedes|see) (?:the )?(?:PRs? |pull requests? "
    r"|issues? )?"
    r"(?:#\d+|https?://\S+/(?:issues|pull|pulls|merge_requests)/\d+)",
)
"""What cannot be understood without another commit."""

REFERS_BACK = _words(
    r"^(?:this|that|these|those|it|they|such|each|both|neither|doing so|in (?:this|that) case|as "
    r"such|otherwise)\b",
    r"^because of (?:this|that)\b",
    r"^(?:therefore|moreover|in addition|additionally|principally|besides|in particular|as a "
    r"result|hence|thus)\b",
    r"^(?:since|because|as|while|although|when) (?:it|this|that|they|these|those|it's|it’s)\b",
    r"^(?:consequently|furthermore|similarly|likewise|instead|now that|for (?:example|instance))\b",
    r"^(?:accordingly|rather|as well)\b",
)
"""How sentences begin that lean on the one before."""
REFERS_TO_SUBJECT = _words(r"^(?:this|it|otherwise|they|these)\b")

CHANGES = _words(
    r"\b(?:now|must|no longer|defaults?|requires?|remov\w+|instead|replac\w+|drop\w*|renam\w+"
    r"|need|was|were)\b"
)
"""What a sentence says that tells users of a break."""

CHORE = _words(
    r"^(?:merge|bump|release|wip|partial|fixup|squash|amend|version|initial commit|v?\d+\.\d"
    r"|upgrade|pin "
    r"|changelog)",
    r"^update (?:dep|lock|change|author|readme|translat|\S*(?:plugin|maven|gradle|version|action))",
    r"^(?:typo|format|lint|black|isort|rebase|sync|reapply)",
    r"^(?:revert|reverted|add(?:ed)? (?:tests?|release|stub)|doc[s:]|translat|\[pre-commit"
    r"|pre-commit|chore)",
    r"^(?:build\(deps|ci[:( ]|prepare (?:for |the )?(?:next|release|v?\d))",
)
CHANGED_NOTHING = _words(
    r"^(?:clean(?:ed|s)?[ -]?up|rename[ds]?|remov(?:e|ed|es|ing) (?:un|redundant|dead|obsolete"
    r"|duplicate|flaky))",
    r"^(?:refactor|reformat|reorgani[sz]|document|clarif|correct(?:ed)? (?:doc|comment|typo)"
    r"|rewr(?:ite|ote)|tweak)",
    r"^(?:rework(?:ed)?|improved? (?:doc|test|error message|wording)|small|minor|vendor|simplif"
    r"|modernize)",
    r"^(?:add(?:ed|s)? (?:doc|note|comment|missing|more|regression|test)|test(?:ed|s)?\b"
    r"|switch(?:ed)? to|moved?\b)",
    r"^(?:state|mention|explain|note)\b|^(?:use[ds]? (?:f-string|super)|split (?:up |out |the |a "
    r"|\d"
    r"|into )?.*\b(?:files?|components?|page|facade|modules?|class(?:es)?|services?|helpers?))",
    r"\b(?:tests?|testcase|test_\w+|\w+Tests?|\w*TestCase|fixtures)\b(?! (?:client|runner"
    r"|framework))",
    r"\b(?-i:Test[A-Z])\w+",
    r"\b(?:transitive|dev|unused|direct|optional) dependenc(?:y|ies)\b",
    r"\b(?:flak(?:y|iness)|docs?|documentation|docstrings?|comments?|workflow|mypy|lint\w*|typing"
    r"|type hints?)\b",
    r"\b(?:annotat\w+|error messages?|parenthes[ei]s|maven|gradle|cmake|makefile|typos?"
    r"|benchmarks?|github)\b",
    r"\b(?:codeql|readme|contributing|issue template|tutorial)\b",
)
"""Subjects of commits that leave the program as it was."""
EMPTY_SUBJECT = _words(
    r"\b(?:review|feedback|suggestions?|findings)\b|\bR\d\b",
    r"^(?:various|misc|more|several|some|other|final|another|follow[- ]up|polish|harden(?:ing)? "
    r"(?:\w+ )?latent)\b",
)
"""Subjects that say nothing; the reason below them may."""


_LISTENED = 4_000
_MOST = 12
_AROUND = 400
_LONGEST_SENTENCE = 360
_CODE = regex(r"```.*?(?:```|\Z)", re.DOTALL)
_END = regex(r"(?<=[.!?])\s+(?=[A-Z\"'`(¿¡ÀÂÉÈÊÎÔÛÄÖÜ])|(?<=[。！？])|\n+")
_UNREAL = regex(
    r"^\s*(?:if|whether|unless|when|would|could|should|si|falls|wenn|如果|もし)\b|[?？]\s*$",
    re.IGNORECASE,
)


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
        if not _UNREAL.search(sentence) and len(sentence) <= 2 * _LONGEST_SENTENCE
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
