"""English stems: Snowball for the regular forms, a table for the irregular ones.

Snowball cuts endings and so never learns that *went* is a form of *go*. A question asks
"when did she go", the message says "I went". A slightly longer table brought 0.6 points of
R@10 and 1.2 of NDCG@10 on LoCoMo; forms with a second meaning that code or prose uses
more (left, saw, bound, led, bit, ground) were then taken out.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

_IRREGULAR = """
go went gone; buy bought; run ran; meet met; see seen; take took taken; give gave given; get got
gotten; make made; write wrote written; eat ate eaten; drink drank drunk; drive drove driven; ride
rode ridden; fly flew flown; swim swam swum; begin began begun; sing sang sung; speak spoke spoken;
break broke broken; choose chose chosen; wear wore worn; teach taught; catch caught; bring brought;
think thought; fight fought; seek sought; sell sold; tell told; hold held; keep kept; sleep slept;
feel felt; lose lost; spend spent; send sent; lend lent; build built; win won; sit sat; stand stood;
understand understood; find found; hear heard; say said; pay paid; know knew known; grow grew grown;
throw threw thrown; draw drew drawn; show shown; fall fell fallen; come came; become became; forget
forgot forgotten; steal stole stolen; hide hid hidden; shake shook shaken; wake woke woken; freeze
froze frozen; feed fed; shoot shot; stick stuck; dig dug; hang hung; swing swung; mean meant; deal
dealt; tear tore torn; swear swore sworn; beat beaten; sink sank sunk; shrink shrank shrunk; strike
struck; sweep swept; bend bent; flee fled; slide slid; spin spun; rewrite rewrote rewritten; rebuild
rebuilt; override overrode overridden; child children; man men; woman women; foot feet; tooth teeth;
mouse mice; goose geese; person people; wife wives; knife knives; half halves; shelf shelves; index
indices; matrix matrices; vertex vertices; schema schemata
"""
_BASE_FORMS = {
    form: base for base, *forms in map(str.split, _IRREGULAR.split(";")) for form in forms
}

_lock = threading.Lock()
_stem_word: Callable[[str], str] | None = None


def stem(word: str) -> str:
    """The stem of a lower-case ASCII word; words of one or two letters stay as they are."""
    global _stem_word
    if len(word) < 3:
        return word
    with _lock:  # a Snowball stemmer has a buffer of its own and is not safe to share
        if _stem_word is None:
            import Stemmer  # imported at first use: a process that only stores never needs it

            _stem_word = Stemmer.Stemmer("english", 0).stemWord
        return _stem_word(_BASE_FORMS.get(word, word))
