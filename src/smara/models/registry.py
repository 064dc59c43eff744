"""Parse model settings and choose a chat model by input size.

``anthropic:claude-haiku-4-5`` names a vendor and its model. A URL before the model,
``ollama:http://box:11434/v1#qwen3``, names the server. Tiers look like ``<8000: ollama:qwen3;
<100000: anthropic:claude-haiku-4-5; else: anthropic:claude-sonnet-5``: the first tier whose
bound, in tokens, is above the size of the input is used.
"""

from __future__ import annotations

from collections.abc import Sequence

from smara.core.startup.record import dataclass
from smara.core.startup.regex import regex
from smara.errors import ConfigError
from smara.models.chat import ChatModel

OFFLINE = "offline"
PACKAGES = {
    "anthropic": "anthropic", "openai": "openai", "openai-compatible": "openai", "ollama": "openai",
    "google": "google.genai",
}  # fmt: skip
"""The package that speaks to each vendor."""

_FORMS = (
    "Write it as VENDOR:MODEL, such as anthropic:claude-haiku-4-5, openai:gpt-5-mini, "
    "google:gemini-2.5-flash or "
    "ollama:qwen3; as openai-compatible:http://127.0.0.1:8000/v1#MODEL; as tiers by the tokens of "
    "the input, such as "
    "'<8000: ollama:qwen3; else: anthropic:claude-haiku-4-5'; or as 'offline'."
)
_TIER = regex(r"(?:<\s*(?P<below>\d[\d_]*)|else)\s*:\s*(?P<model>\S+)")


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """A model and where it is asked."""

    vendor: str
    model: str
    base_url: str | None = None

    @property
    def name(self) -> str:
        """Vendor and model, without the URL and its password."""
        return f"{self.vendor}:{self.model}"


Tiers = Sequence[tuple[int | None, ChatModel]]
"""The models in force, smallest inputs first: each with the tokens that its inputs stay below."""


def model_for(tiers: Tiers, tokens: int) -> ChatModel:
    """Return the model for an input of this size."""
    return next(model for below, model in tiers if below is None or tokens < below)


def is_offline(setting: str | None) -> bool:
    """Return True if no model is configured."""
    return setting is None or setting.strip() in ("", OFFLINE)


def parse_tiers(setting: str) -> list[tuple[int | None, ModelSpec]]:
    """Parse a setting's bounds and models.

    A single model is one tier without a bound.

    >>> [(below, spec.name) for below, spec in parse_tiers("<8_000: ollama:qwen3; else: openai:gpt-5-mini")]
    [(8000, 'ollama:qwen3'), (None, 'openai:gpt-5-mini')]
    """  # noqa: E501
    if not setting.lstrip().startswith(("<", "else")):
        return [(None, parse_spec(setting))]
    found: list[tuple[int | None, ModelSpec]] = []
    for part in filter(None, (each.strip() for each in setting.split(";"))):
        match = _TIER.fullmatch(part)
        if match is None:
            raise ConfigError(f"The tier {part!r} of the setting model cannot be read. {_FORMS}")
        below = int(match["below"]) if match["below"] else None
        found.append((below, parse_spec(match["model"])))
    bounds = [below for below, _ in found]
    rising = [below for below in bounds if below is not None]
    if bounds[-1] is not None or bounds.count(None) > 1 or sorted(set(rising)) != rising:
        raise ConfigError(
            f"The tiers of the setting model must have rising bounds and end with else. {_FORMS}"
        )
    return found


def parse_spec(text: str) -> ModelSpec:
    """One model from its string.

    >>> parse_spec("openai-compatible:http://127.0.0.1:8000/v1#qwen3:8b")
    ModelSpec(vendor='openai-compatible', model='qwen3:8b', base_url='http://127.0.0.1:8000/v1')
    """
    vendor, _, rest = text.strip().partition(":")
    base_url, model = None, rest.strip()
    if model.startswith(("http://", "https://")):
        base_url, _, model = model.partition("#")
    if vendor not in PACKAGES:
        raise ConfigError(f"{vendor!r} is no vendor of models. {_FORMS}")
    if not model or any(letter.isspace() for letter in model):
        raise ConfigError(f"The setting model names no model of {vendor}. {_FORMS}")
    if vendor == "openai-compatible" and base_url is None:
        raise ConfigError(f"openai-compatible needs the address of the server. {_FORMS}")
    return ModelSpec(vendor, model, base_url)
