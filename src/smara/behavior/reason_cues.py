"""List the words that mark a reason in a commit message.

A reason is a cause that still holds ("because it does not …") or a harm that is
prevented ("to avoid losing …"). Other lists mark sentences that are of no use later.
"""

from __future__ import annotations

import re


def _words(*alternatives: str) -> re.Pattern[str]:
    return re.compile("|".join(alternatives), re.IGNORECASE)


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
    r"\b(?:risks? (?:is|are)|test-only|still being|narrowly scoped|no (?:behaviou?r|functional) "
    r"change"
    r"|(?:manual(?:ly)?|mutation)[ -](?:test|verif)\w*)\b",
    r"\b(?:disregard|tests? (?:fail\w*|were|was|is|are|added|case|suite|coverage)|unit tests?"
    r"|regression tests|tests"
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
    r"^(?:merge|bump|release|wip|fixup|squash|amend|version|initial commit|v?\d+\.\d|upgrade|pin "
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
    r"\b(?:review|feedback|suggestions?|findings)\b",
    r"^(?:various|misc|more|several|some|other|final|another|follow[- ]up|polish|harden(?:ing)? "
    r"(?:\w+ )?latent)\b",
)
"""Subjects that say nothing; the reason below them may."""
