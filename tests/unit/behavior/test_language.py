"""What agents say when they correct themselves or give up, in six languages."""

from __future__ import annotations

import pytest

from smara.behavior.cues import listen

STRONG = [
    ("en", "I was wrong about the cache. `load()` is actually lazy.", "`load()` is actually lazy"),
    ("en", "I initially assumed that `a.py` holds it, but `b.py` does.", "`b.py` does"),
    (
        "en",
        "Actually, the port is read from `env.py`, not from `settings.py`.",
        "the port is read from `env.py`",
    ),
    (
        "en",
        "My earlier assumption that ids are integers was wrong: `new_id()` gives texts.",
        "`new_id()` gives texts",
    ),
    (
        "fr",
        "Je pensais que le cache était global, mais `load()` est par session.",
        "`load()` est par session",
    ),
    (
        "fr",
        "En fait, le port vient de `env.py`, et non de `settings.py`.",
        "le port vient de `env.py`",
    ),
    (
        "de",
        "Ich dachte zuerst, dass das synchron ist, aber `run()` startet einen Thread.",
        "`run()` startet einen Thread",
    ),
    (
        "de",
        "Tatsächlich kommt der Port aus `env.py`, und nicht aus `settings.py`.",
        "kommt der Port aus `env.py`",
    ),
    ("es", "Pensé que era una lista, pero `items` es un mapa.", "`items` es un mapa"),
    (
        "es",
        "En realidad, el puerto viene de `env.py`, en lugar de `settings.py`.",
        "el puerto viene de `env.py`",
    ),
    ("zh", "我之前以为它是同步的，但实际上`run()`是异步的。", "`run()`是异步的"),
    ("zh", "实际上端口来自`env`，而不是`settings`。", "端口来自`env`"),
    ("ja", "最初は同期だと思っていましたが、`run()`は非同期です。", "`run()`は非同期です"),
    ("ja", "実際には`settings`ではなく、`env`から読みます。", "`env`から読みます"),
]
WEAK = [
    "Wait, that is odd.", "Let me reconsider: both work.", "Correction: it is the other file.",
    "I misread the output.",
    "Je me suis trompé.", "Ich habe mich geirrt.", "Me equivoqué.", "我弄错了。", "間違えました。",
]  # fmt: skip
GIVEN_UP = [
    "This approach won't work.", "I need to abandon this idea.", "Let me try a different approach.",
    "Docker is not available in this environment.", "Redis is unavailable in ci.",
    "Cette approche ne fonctionne pas.", "Dieser Ansatz funktioniert nicht.",
    "Este enfoque no funciona.",
    "这个方法行不通。", "この方法ではうまくいきません。",
]  # fmt: skip
NOTHING = [
    "If I was wrong about the cache, the test would fail.",
    "Is it actually the queue, not the cache?",
    "The approach is documented in the README.", "I thought about names for a while.",
    "Please wait for the build.",
    "```\nI was wrong about x. y is actually z.\n```",
    "This module is available in three languages.",
    "他认为这个名字好听。", "",
]  # fmt: skip


@pytest.mark.parametrize(("language", "text", "right"), STRONG)
def test_a_correction_with_both_sides_is_heard(language, text, right):
    (said,) = listen(text)
    assert (said.kind, said.language, said.right) == ("correction", language, right)
    assert said.wrong


@pytest.mark.parametrize("text", WEAK)
def test_a_correction_with_one_side_is_heard_as_a_weak_one(text):
    (said,) = listen(text)
    assert (said.kind, said.wrong, said.right) == ("correction", "", "")


@pytest.mark.parametrize("text", GIVEN_UP)
def test_giving_up_is_heard(text):
    assert [said.kind for said in listen(text)] == ["dead_end"]


@pytest.mark.parametrize("text", NOTHING)
def test_other_words_are_not(text):
    assert listen(text) == []


def test_a_sentence_among_many_is_found_and_told_alone():
    text = (
        f"{'Looking at the next file now. ' * 40}I was wrong about `x`. `y` is actually used. "
        f"{'Then on. ' * 40}"
    )
    assert [said.sentence for said in listen(text)] == [
        "I was wrong about `x`. `y` is actually used."
    ]
