"""How large a request is at the very most: more than any tokenizer at hand makes of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smara.core.tokens import ExactCounter, counter_for
from smara.models.budget import bound, size_of
from smara.models.chat import ChatRequest

ROOT = Path(__file__).parents[3]
OTHERS = [ExactCounter(name) for name in ("cl100k_base", "llama3", "deepseek_v3", "qwen3")]
TEXTS = [
    "def f(x):\n    return x + 1\n" * 50, "The user wants dark mode in settings.tsx. " * 50,
    "重跑集成测试并修复。" * 50, "пользователь попросил переписать тесты. " * 50, "ಬಳಕೆದಾರರು " * 60,
    "उपयोगकर्ता ने परीक्षण लिखने को कहा। " * 50, "👩‍👩‍👧‍👦🏳️‍🌈" * 50, "4f9a1c7e-22b8-9d3e " * 100,
    "1234567890" * 100,
    "=" * 900 + "\n" + "- " * 90, "QmFzZTY0IGlzIGRlbnNlIQ==" * 100, "\t\t    \n" * 200,
]  # fmt: skip


@pytest.mark.parametrize("other", OTHERS, ids=lambda counter: counter.encoding)
@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_no_tokenizer_needs_more_than_the_bound(text, other):
    assert other.count(text).tokens <= bound(text, counter_for().count(text).tokens)


@pytest.mark.parametrize("other", OTHERS, ids=lambda counter: counter.encoding)
def test_code_and_prose_of_this_repository_stay_far_below_the_bound(other):
    for path in [
        *sorted((ROOT / "src").rglob("*.py"))[::5],
        *sorted((ROOT / "docs").rglob("*.md")),
    ]:
        text = path.read_text(encoding="utf-8")
        assert other.count(text).tokens <= 0.8 * bound(text, counter_for().count(text).tokens), path


@given(st.text(max_size=200), st.integers(0, 1_000))
def test_the_bound_is_never_more_than_a_token_for_each_byte(text, tokens):
    assert bound(text, tokens) <= len(text.encode("utf-8", "replace")) + 64


def test_the_bound_of_english_is_less_than_twice_its_tokens():
    size = size_of(ChatRequest("Please rewrite the tests. " * 400, "Be brief."), counter_for())
    assert size.tokens * 1.5 <= size.bound_tokens < size.tokens * 2


def test_system_and_prompt_both_count():
    whole = size_of(ChatRequest("prompt " * 10, "system " * 10), counter_for()).tokens
    assert whole > size_of(ChatRequest("prompt " * 10), counter_for()).tokens
