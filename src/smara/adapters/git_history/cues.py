"""The words by which a reason is known, and those by which a sentence is known to be of no use later.

Found by reading what came through from the histories of eight public projects, and raised until four of five memories
were worth a developer's time.
"""

from __future__ import annotations

import re


def _words(*alternatives: str) -> re.Pattern[str]:
    return re.compile("|".join(alternatives), re.IGNORECASE)


REASON = _words(
    r"(?:^|[,;:] |\bor )otherwise\b|\botherwise,",
    r"\bso that [^.]*\b(?:not|\w+n't|never|without|cannot|no longer|only|always|even)\b",
    r"\b(?:because|to (?:avoid|prevent)|due to (?!https?:)|decided|in favou?r of|must not|must never)\b",
    r"(?<!ever )\bsince (?:it|this|that|they|the|a|an|we|there|some)\b",
    r"\bas (?:it|this|that|they|the|we) \w+n't\b",
    r"\bas (?:it|this|they|the \w+) (?:does not|do not|cannot|is not|are not)\b",
    r"\b(?:causes?|caused|leads?|led|resulted|results) (?:to|in|a|an|the|\w+ing)\b",
    r"\b(?:(?<!the )breaks?(?!-)|broke|crash(?:es|ed|ing)?|deadlock|race|leak(?:s|ed|ing)?|corrupt\w*|silently)\b",
    r"\b(?:vulnerab\w+|denial|data loss|quadratic|exponential (?!backoff)\w+)\b",
)
"""Why something is as it is, or what goes wrong otherwise. *Instead of* alone only says what was done."""

TRAP = _words(
    r"\b(?:breaks?|broke|crash\w*|fail(?:s|ed|ing|ure)?|deadlock\w*|race|leak\w*|hangs?|corrupt\w*|silently)\b",
    r"\b(?:must (?:not|never)|never|regress\w*|raise[sd]?|\w*errors?|vulnerab\w+|denial|bug|data loss|quadratic)\b",
    r"\b(?:wrong(?:ly)?|incorrect(?:ly)?|unexpected(?:ly)?)\b",
)
CHOICE = _words(r"\b(?:decided|instead of|in favou?r of|rather than|chose|prefer\w*)\b")

NOT_ALONE = _words(
    # What is said to reviewers, of the author, or only of what the change does.
    r"^(?:\(|\w+(?:\([^)]*\))?!?: |thanks|thank you|see|could|fixing|adding|adds? |change |use |in such)",
    r"^note (?:that|to)\b",
    r"^(?:other |no need|ideally|technically|after this|in favou?r of|looking at|no (?:new )?tests?\b|todo|fixme|oops)",
    r"^(?:we (?:also|now|can|could|might)|this (?:commit|patch|change|pr) (?:does|do|is|has|only)\b|co-authored)",
    r"^this (?:also )?(?:handles|fixes|adds|changes|makes|moves|removes|introduces|updates|is fine)\b",
    r"^(?:reported|reviewed|tested|based on|credit|patch by|hopefully|sorry|maybe|perhaps|not sure)\b",
    r"^(?:tests? |document |it appears|strictly speaking|in practice|discovered|found|as reported by)\b",
    r"^(?:remaining|unfortunately)\b",
    r"^(?:also|but|and|or|which|however|then|so|yet|still)\b",
    r"\b(?-i:I)\b(?!/)|\b(?:my|me|let's|myself)\b|(?:\.\.\.|…)$",
    # What is about the work on the code.
    r"\b(?:disregard|tests? (?:fail\w*|were|was|is|are|added|case|suite|coverage)|unit tests?|regression tests)\b",
    r"\bpython (?:2|3\.[0-9])\b",
    r"\b(?:pull request|this pr|the pr|rebased?|squash|reviewer|review comments?|code review)\b",
    r"\b(?:typo|flake8|pylint|mypy|linter|isort|pep ?8|changelog|release notes|travis|appveyor|codecov|coverage)\b",
    r"\b(?:dependabot|ci|refactor\w*|clean ?ups?|tidy|semver\w*|backport\w*|cosmetic|spelling|readability|cleaner)\b",
    r"\b(?:little bit|weird|for now|at the moment|work in progress|room for|further improvements|future work)\b",
    r"\b(?:out of scope|logic above|pretty (?:bad|much)|this adds|likely missed|better word|going to)\b",
    r"\bto reduce dup\w+",
    r"\b(?:while (?:working|looking|investigating|debugging)|code duplication|easier to read|more readabl[ey])\b",
    r"\b(?:consisten(?:t|cy)|apparently|presumably|bc (?:compatible|break)|-?werror|breaks? the build|reformat\w*)\b",
    r"\b(?:compiler|deprecation|type checker|sanitizer)s? (?:warnings?|complain\w*)\b",
)
EARLIER = _words(
    r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,40}\b|\b[0-9]{9,40}\b",
    r"\b(?:previous|last|earlier|this|next) commit\b",
)
"""What cannot be understood without another commit."""

REFERS_BACK = _words(
    r"^(?:this|that|these|those|it|they|such|doing so|in (?:this|that) case|as such|otherwise)\b",
    r"^because of (?:this|that)\b",
    r"^(?:therefore|moreover|in addition|additionally|principally|besides|in particular|as a result|hence|thus)\b",
    r"^(?:since|because|as|while|although|when) (?:it|this|that|they|these|those|it's|it’s)\b",
    r"^(?:consequently|furthermore|similarly|likewise|instead|now that|for (?:example|instance))\b",
)
"""How sentences begin that lean on the one before."""
REFERS_TO_SUBJECT = _words(r"^(?:this|it|otherwise|they|these)\b")

CHORE = _words(
    r"^(?:merge|bump|release|wip|fixup|squash|amend|version|initial commit|v?\d+\.\d|upgrade|pin |changelog)",
    r"^update (?:dep|lock|change|author|readme|translat|\S*(?:plugin|maven|gradle|version|action))",
    r"^(?:typo|format|lint|black|isort|rebase|sync|reapply)",
    r"^(?:revert|reverted|add(?:ed)? (?:tests?|release|stub)|doc[s:]|translat|\[pre-commit|pre-commit|chore)",
    r"^(?:build\(deps|ci[:( ]|prepare (?:for |the )?(?:next|release|v?\d))",
)
CHANGED_NOTHING = _words(
    r"^(?:clean(?:ed|s)?[ -]?up|rename[ds]?|remov(?:e|ed|es|ing) (?:un|redundant|dead|obsolete|duplicate|flaky))",
    r"^(?:refactor|reformat|reorgani[sz]|document|clarif|correct(?:ed)? (?:doc|comment|typo)|rewr(?:ite|ote)|tweak)",
    r"^(?:rework(?:ed)?|improved? (?:doc|test|error message|wording)|small|minor|vendor|simplif|modernize)",
    r"^(?:add(?:ed|s)? (?:doc|note|comment|missing|more|regression|test)|test(?:ed|s)?\b|switch(?:ed)? to|moved?\b)",
    r"^use[ds]? (?:f-string|super)",
    r"\b(?:tests?|testcase|test_\w+|\w+Tests?|\w*TestCase|fixtures)\b(?! (?:client|runner|framework))",
    r"\b(?:flak(?:y|iness)|docs?|documentation|docstrings?|comments?|workflow|mypy|lint\w*|typing|type hints?)\b",
    r"\b(?:annotat\w+|error messages?|parenthes[ei]s|maven|gradle|cmake|makefile|typos?|benchmarks?|github)\b",
    r"\b(?:codeql|readme|contributing|issue template|tutorial)\b",
)
"""Subjects of commits that leave the program as it was."""
