"""Words that say nothing about what a question is after.

They are dropped from a query unless nothing else is left; the index keeps them, so that
phrases stay whole. Written by hand from the closed word classes of English, plus the
verbs with which people ask a memory something (*remember*, *tell*, *mention*).
"""

from __future__ import annotations

_ARTICLES = "a an the this that these those"
_PRONOUNS = (
    "i me my mine myself we us our ours ourselves you your yours yourself yourselves he him his "
    "himself she her hers"
    " herself it its itself they them their theirs themselves one ones someone somebody something "
    "anyone anybody"
    " anything everyone everybody everything nobody nothing"
)
_QUESTIONS = "what which who whom whose when where why how whatever whichever"
_VERBS = (
    "am is are was were be been being do does did done doing have has had having can could will "
    "would shall should may"
    " might must ought"
)
_CONTRACTIONS = (
    "dont doesnt didnt isnt arent wasnt werent hasnt havent hadnt wont wouldnt cant couldnt "
    "shouldnt mustnt neednt im"
    " ive id ill youre youve youd youll hes shes theyre theyve theyd theyll weve wed thats whats "
    "whos wheres hows"
    " theres lets aint"
)
_PREPOSITIONS = (
    "of at by for with about against between into through during before after above below to from "
    "up down in out on off"
    " over under upon per via within without toward towards onto"
)
_CONJUNCTIONS = (
    "and or but nor so yet if because as until while than though although unless since whether"
)
_ADVERBS = (
    "again further then once here there all any both each few more most other others some such no "
    "not only own same too"
    " very just also now ever even still quite really rather almost else much many"
)
_ASKING = "please tell remind remember recall mention mentioned"

_ALL = " ".join(
    (
        *(_ARTICLES, _PRONOUNS, _QUESTIONS, _VERBS, _CONTRACTIONS),
        *(_PREPOSITIONS, _CONJUNCTIONS, _ADVERBS, _ASKING),
    )
)
STOP_WORDS = frozenset(_ALL.split())

# Words that measure time are asked for ("how many days ago") far more often than they are said
# where the answer is. They keep a share of their weight; on LongMemEval_S this brought 1.2 points
# of R@5.
_TIME = "second minute hour day week month year time times ago pass passed long"
TIME_WORDS = frozenset(f"{_TIME} seconds minutes hours days weeks months years".split())

# Words that say what kind of answer a question wants ("the total number of") stand seldom where the
# answer is. They are weak in such questions alone; on LongMemEval_S this brought 0.6 points of R@5,
# on a shared haystack 1.2.
_ANSWERS = "total number amount average different order name type kind"
ANSWER_WORDS = frozenset(_ANSWERS.split())
# People who ask about code name the language, and code does not. On CoSQA this brought 1.1 points
# of MRR.
_LANGUAGES = "python javascript typescript java ruby golang rust php perl kotlin swift scala bash"
LANGUAGES = frozenset(_LANGUAGES.split())
