"""Which model: one string, or tiers by the size of the input; what cannot be read is told with the
forms.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

from smara.errors import ConfigError, MissingExtraError
from smara.models.registry import (
    ModelSpec,
    is_offline,
    model_for,
    parse_spec,
    parse_tiers,
)
from smara.models.vendor import load_tiers
from smara.testing import ScriptedModel

TIERS = "<8000: ollama:qwen3; <100_000: anthropic:claude-haiku-4-5; else: openai:gpt-5"


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("anthropic:claude-haiku-4-5", ModelSpec("anthropic", "claude-haiku-4-5")),
        (" openai:gpt-5-mini ", ModelSpec("openai", "gpt-5-mini")),
        ("ollama:qwen3:8b", ModelSpec("ollama", "qwen3:8b")),
        (
            "ollama:http://box:11434/v1#qwen3:8b",
            ModelSpec("ollama", "qwen3:8b", "http://box:11434/v1"),
        ),
        ("google:gemini-2.5-flash", ModelSpec("google", "gemini-2.5-flash")),
        (
            "openai-compatible:http://127.0.0.1:8000/v1#org/model",
            ModelSpec("openai-compatible", "org/model", "http://127.0.0.1:8000/v1"),
        ),
        (
            "anthropic:https://proxy.test#claude-x",
            ModelSpec("anthropic", "claude-x", "https://proxy.test"),
        ),
    ],
)
def test_one_string_names_vendor_model_and_address(text, spec):
    assert parse_spec(text) == spec
    assert parse_tiers(text) == [(None, spec)]


@pytest.mark.parametrize(
    "text",
    [
        "claude", "mistral:large", "anthropic:", "openai-compatible:qwen3",
        "ollama:http://box:11434/v1", "openai:a b",
        "<8000: ollama:qwen3", "<9: ollama:a; <8: ollama:b; else: ollama:c",
        "else: ollama:a; else: ollama:b",
        "<8000 ollama:qwen3; else: ollama:x", "<many: ollama:x; else: ollama:y",
        "else: ollama:a; <8: ollama:b",
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_refused_with_the_forms(text):
    with pytest.raises(
        ConfigError,
        match=r"VENDOR:MODEL.*openai-compatible:http.*<8000: ollama:qwen3; else.*offline",
    ):
        parse_tiers(text)


def test_tiers_are_read_with_their_bounds():
    assert [(below, spec.name) for below, spec in parse_tiers(TIERS)] == [
        (8_000, "ollama:qwen3"),
        (100_000, "anthropic:claude-haiku-4-5"),
        (None, "openai:gpt-5"),
    ]


@pytest.mark.parametrize(
    ("tokens", "name"),
    [(0, "small"), (7_999, "small"), (8_000, "middle"), (99_999, "middle"), (100_000, "large")],
)
def test_the_first_tier_whose_bound_is_above_the_size_is_taken(tokens, name):
    tiers = [
        (8_000, ScriptedModel(name="small")),
        (100_000, ScriptedModel(name="middle")),
        (None, ScriptedModel(name="large")),
    ]
    assert model_for(tiers, tokens).name == name


def test_the_name_of_a_model_does_not_tell_its_address():
    assert (
        parse_spec("openai-compatible:http://me:secret@host/v1#qwen3").name
        == "openai-compatible:qwen3"
    )


@pytest.mark.parametrize(
    ("setting", "expected"), [(None, True), ("", True), ("offline", True), (TIERS, False)]
)
def test_offline_is_the_default_and_can_be_said(setting, expected):
    assert is_offline(setting) is expected


@pytest.mark.parametrize("package", ["pydantic_ai", "anthropic"])
def test_a_missing_package_is_told_with_the_command_that_installs_it(monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=rf'{package}.*pip install "smara\[models\]"'):
        load_tiers("anthropic:claude-haiku-4-5")


def test_naming_a_model_loads_nothing_heavy(tmp_path):
    code = f"""import sys, smara
with smara.open({str(tmp_path / "s.db")!r}, model={TIERS!r}) as memory:
    memory.models.status()
    memory.models._tiers({TIERS!r})
print([name for name in ("pydantic_ai", "anthropic", "openai", "google.genai", "asyncio") if name in sys.modules])"""  # noqa: E501
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
