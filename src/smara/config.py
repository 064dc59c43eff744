"""Read settings from the environment and ``smara.toml``.

No other module reads either. What is given in a call wins over the environment, the environment
over the file, the file over the defaults. Every store is divided by git repository, which is what
the project ``auto`` means. Setting names carry their unit.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from smara.core.startup.record import dataclass, field, fields, replace
from smara.core.startup.regex import regex
from smara.environment import SERVERS, store_file
from smara.errors import ConfigError

AUTO_PROJECT = "auto"
_SERVER = regex(r"https?://(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::[0-9]{1,5})?/?")
"""What a Host header can say: a name of another form would be answered to no request."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that can be set; frozen once a memory is open."""

    db: str | None = None
    """Path or URL of the store; ``None`` for the per-user store."""
    project: str | None = None
    """Project to work in; without it, or with ``auto``, the git repository around the current
    folder.
    """
    resource: str = "default"
    """Who new threads belong to when nobody says."""
    actor: str | None = None
    """Who acts, as events tell it; the name of the system's user when nobody says."""
    session: str | None = None
    """The session that acts: one run of an agent. Claims of tasks belong to it."""
    durability: Literal["full", "normal"] = "full"
    """``full``: an acknowledged message survives a power cut. ``normal``: it survives a killed
    process.
    """
    busy_timeout_seconds: float = 30.0
    """How long a write waits for another process."""
    replica_url: str | None = None
    """A streaming replica of the PostgreSQL in ``db``; searches use it while it is up to date."""
    replica_lag_seconds: float = 5.0
    """By how much writes of other processes may be missed on the replica."""
    fleet_url: str | None = None
    """The URL of PostgreSQL itself for `smara worker --fleet` where ``db`` leads to a pooler."""
    fleet_limits: str = "threads=4; learning=1; vectors=1"
    """How many jobs of each queue one process of a fleet runs at once."""
    drain_seconds: float = 0.0
    """How long a server that is told to stop goes on answering while ``/ready`` says no."""
    public_url: str | None = None
    """The address of servers behind a proxy with TLS, such as ``https://smara.example.com``."""
    log_format: Literal["text", "json"] = "text"
    """How ``--verbose`` writes log lines: for people, or one JSON object each."""
    tracing: bool = False
    """Whether servers and fleets send spans to the collector that ``OTEL_…`` variables name."""
    token_model: str = "o200k_base"  # noqa: S105 - the name of an encoding
    """Model or encoding that token counts are made for."""
    compact_every_messages: int = 10
    """After this many new messages a thread is looked at for compaction; 0 turns it off."""
    compact_after_messages: int = 30
    """A thread with this many whole messages has its oldest run summarized (level 1)."""
    archive_after_messages: int = 90
    """Summaries this many messages back are archived (level 2)."""
    compact_run_messages: int = 10
    """How many messages one summary stands for."""
    import_unpacked_mib: int = 16
    """A packed file may unpack to so much, however small it is."""
    import_unpack_ratio: int = 200
    """And to so many times its size; past both its import stops."""
    import_most_unpacked_gib: int = 16
    """No packed file may unpack to more, whatever its size."""
    task_prefix: str = "t"
    """What the short ids of new tasks begin with."""
    claim_expires_after_minutes: int = 240
    """A task is free again when the session that claimed it was silent for so long; 0 for never."""
    compact_tasks_after_days: int = 30
    """What is shown of a task closed so long ago is shortened (level 1)."""
    archive_tasks_after_days: int = 90
    """And to a single line (level 2)."""
    working_max_characters: int = 20_000
    """A longer working memory is refused: five times what a model is shown of it, about 5,000
    tokens.
    """
    working_template: str = "coding"
    """The empty page a working memory begins with: ``coding``, ``person``, or Markdown text."""
    observe_enabled: bool = True
    """Whether conversations are observed, and observations shown."""
    observe_read_only: bool = False
    """Show what was observed, and write nothing."""
    observe_scope: Literal["thread", "resource"] = "thread"
    """Whose observations they are: each thread's own, or one pool for all threads of a resource."""
    observe_after_tokens: int = 30_000
    """How many tokens of messages come together before they are replaced by observations."""
    observe_modes: str | None = None
    """Thresholds of single modes, where they should be others: ``explore=50000; testing=20000``."""
    reflect_after_tokens: int = 40_000
    """How many tokens of observations come together before the older ones are condensed."""
    reflect_ahead_fraction: float = 0.8
    """From so large a part of that on, a reflection is made in the background, ahead of need."""
    reflections_limit_tokens: int = 80_000
    """Reflections over this are condensed harder."""
    buffer_fraction: float = 0.2
    """Every so large a part of the threshold, a chunk is observed in the background."""
    activate_fraction: float = 0.8
    """From so large a part of the threshold, what was observed is shown."""
    retain_fraction: float = 0.2
    """So large a part of the threshold stays as raw messages."""
    activate_after_idle_minutes: int = 30
    """After so long a silence nothing is cached any more, and what was observed is shown early."""
    block_fraction: float = 1.2
    """Past so many times the threshold a turn waits for an observation, up to the deadline."""
    block_deadline_seconds: float = 10.0
    """How long a turn waits at most."""
    last_messages: int = 10
    """How many messages are shown where observing is off."""
    observe_timezone: str | None = None
    """The time zone in which observations are dated; the machine's when nobody says."""
    observe_flavor: Literal["coding", "general"] = "coding"
    """What an observer looks for: work on code, or people and plans."""
    observe_instructions: str | None = None
    """What an observer is to look at besides."""
    observation_ids: bool = False
    """Whether each line ends with a short id, by which an agent reads the messages behind it."""
    suggest_response: bool = False
    """Whether a next answer is noted and shown; it fights an agent's own plan, so coding agents do
    without.
    """
    observe_stale_minutes: int = 120
    """A thread silent for so long is observed to its end by a worker."""
    recency_half_life_days: float = 30.0
    """After this many days a message has lost half of its small bonus for being new."""
    search_deadline_seconds: float = 2.0
    """A search answers with what it has when this has passed."""
    reranker: str = "features"
    """Who ranks the best hits once more: ``features`` (search itself), ``off``, or a model; see the
    guide of search.
    """
    reranker_api_key: str | None = field(default=None, repr=False)
    """Key of the reranker's server; Cohere's own may stand in CO_API_KEY."""
    embedder: str = "offline"
    """Who turns text into vectors: ``offline``, ``off``, ``auto``, or a model; see the guide of
    embeddings.
    """
    embedder_dims: int = 0
    """How many dimensions its vectors have; 0 for what is usual with the model."""
    embedder_api_key: str | None = field(default=None, repr=False)
    """Key of the embedder's server; OpenAI's own may stand in OPENAI_API_KEY."""
    embed_query_seconds: float = 0.5
    """How long a search waits for the vector of its question; after that words answer alone, and
    say so.
    """
    embed_in_background: bool = True
    """Whether a process that lives long makes vectors by itself; commands and hooks never do."""
    max_message_bytes: int = 64 * 1024 * 1024
    """A longer message is refused with a clear error; nothing is cut silently."""
    tool_profile: Literal["default", "coding"] = "default"
    """Which tools agents are given: three, or with ``coding`` two more, for code and what was
    learned.
    """
    mcp_token: str | None = None
    """What clients of the MCP server over HTTP must send; made up at each start when nobody
    says.
    """
    http_key: str | None = field(default=None, repr=False)
    """The key of programs that ask `smara serve`; made up at each start without it."""
    model: str | None = None
    """The model that thinks, such as ``anthropic:claude-haiku-4-5``, or tiers by size; ``None``
    works offline.
    """
    observe_model: str | None = None
    """Another model for observing; ``offline`` observes without one."""
    observe_model_settings: str | None = None
    """Settings of its requests as JSON: ``{"temperature": 0.3, "thinking": "low"}``."""
    reflect_model: str | None = None
    """Another model for reflecting; ``offline`` reflects without one."""
    reflect_model_settings: str | None = None
    """Settings of its requests as JSON."""
    model_api_key: str | None = field(default=None, repr=False)
    """Key of an OpenAI-compatible server; the vendors' own keys stand in their own variables."""
    model_deadline_seconds: float = 60.0
    """How long a call of a model may take when the caller does not say, retries included."""
    model_tokens_per_hour: int = 1_000_000
    """The most tokens, read and written, that models may use in any 60 minutes; 0 is none."""
    model_tokens_per_day: int = 5_000_000
    """The most in any 24 hours."""
    model_dollars_per_hour: float = 2.0
    """The most that models may cost in any 60 minutes; 0 allows only models that cost nothing."""
    model_dollars_per_day: float = 5.0
    """The most in any 24 hours."""
    embedding_tokens_per_hour: int = 20_000_000
    """The most tokens that embedders and rerankers on servers may read in any 60 minutes; their
    money counts as any.
    """
    embedding_tokens_per_day: int = 100_000_000
    """The most in any 24 hours."""
    model_prices: str | None = None
    """Dollars per million tokens read and written where we know better: ``ollama:qwen3=0/0;
    openai:x=0.5/2``.
    """
    freshness_drifted: Literal["tell", "hedge", "withhold"] = "hedge"
    """What becomes unasked of a memory whose code has changed: told as it is, told with what
    changed, or kept back.
    """
    freshness_orphaned: Literal["tell", "hedge", "withhold"] = "withhold"
    """And with one whose code is gone."""
    freshness_withhold_fraction: float = 0.5
    """When more than this part of its code differs, a drifted memory is treated as an orphaned
    one.
    """
    freshness_read_files: int = 16
    """How many changed files are read again, at most, to answer one question; beyond, a verdict is
    not known yet.
    """
    moments: Literal["full", "start", "off"] = "full"
    """When agents are told unasked what is known: at all moments, only when a session starts, or
    never.
    """
    moment_start_tokens: int = 2_400
    """The most tokens a session starts with; hosts cut what is longer."""
    moment_statements: int = 12
    """How much a session is told at most in the middle of its work."""
    moment_scratchpad: bool = False
    """Whether an agent that asks between its steps is told what it has noted itself."""
    moment_prefetch: bool = False
    """Whether it is given the contents of files that such work nearly always reads."""
    keep: Literal["text", "vectors"] = "text"
    """What is kept of conversations: their text; or vectors, hashed terms and pointers to the
    agents' transcripts, which alone have the text then. See the guide of privacy.
    """
    retention: str | None = None
    """How long records are kept, where it should be otherwise: a table of limits such as
    ``messages_days = 90``; see the guide of privacy.
    """
    models_enabled: bool = True
    """``false`` stops every call of a model, whatever else is set."""


_CHOICES: dict[str, tuple[str, ...]] = {
    "tool_profile": ("default", "coding"),
    "observe_scope": ("thread", "resource"),
    "observe_flavor": ("coding", "general"),
    "durability": ("full", "normal"),
    "log_format": ("text", "json"),
    "keep": ("text", "vectors"),
    "moments": ("full", "start", "off"),
    "freshness_drifted": ("tell", "hedge", "withhold"),
    "freshness_orphaned": ("tell", "hedge", "withhold"),
}
_TRUTHS = {
    "1": True, "true": True, "yes": True, "on": True,
    "0": False, "false": False, "no": False, "off": False,
}  # fmt: skip
_ENVIRONMENT_PREFIX = "SMARA_"


def load_settings(environment: Mapping[str, str] | None = None, **given: Any) -> Settings:
    """The settings in force, from the call, the environment and ``smara.toml``."""
    environment = os.environ if environment is None else environment
    settings = replace(Settings(), **_from_file(environment))
    from_environment = {
        field.name: _read(field.name, environment[key], key)
        for field in fields(Settings)
        if (key := _ENVIRONMENT_PREFIX + field.name.upper()) in environment
        and environment[key] != ""
    }
    chosen = {name: value for name, value in given.items() if value is not None}
    unknown = set(chosen) - {field.name for field in fields(Settings)}
    if unknown:
        raise ConfigError(
            f"Unknown setting {', '.join(sorted(unknown))}. See docs/reference/settings.md."
        )
    checked = {name: _check(name, value, name) for name, value in chosen.items()}
    return replace(settings, **{**from_environment, **checked})


def vendor_key(*names: str) -> str | None:
    """Return a vendor's key from its first variable that is set.

    Such as ``CO_API_KEY``.
    """
    return next((key for name in names if (key := os.environ.get(name, "").strip())), None)


def default_actor() -> str:
    """The name of the system's user."""
    import getpass

    try:
        return getpass.getuser() or "user"
    except (OSError, KeyError, ImportError):  # no such user in this container
        return "user"


def ollama_url() -> str:
    """Return the address of Ollama, from ``OLLAMA_HOST`` as Ollama itself reads it."""
    from urllib.parse import urlsplit

    host = os.environ.get("OLLAMA_HOST", "").strip().rstrip("/") or "127.0.0.1"
    parts = urlsplit(host if "://" in host else f"http://{host}")
    # A server that listens everywhere is asked here.
    name = parts.hostname if parts.hostname not in (None, "0.0.0.0", "::") else "127.0.0.1"  # noqa: S104
    port = parts.port or {"http": 80, "https": 443}[parts.scheme] if "://" in host else parts.port
    name = f"[{name}]" if ":" in str(name) else name
    return f"{parts.scheme}://{name}:{port or 11434}{parts.path}"


def environment_for_git() -> dict[str, str]:
    """Return the environment for git that asks nothing and fetches nothing."""
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        # An object that is missing would be fetched by a program that the repository names.
        "GIT_ALLOW_PROTOCOL": "none",
        "GIT_NO_LAZY_FETCH": "1",
    }


def local_timezone() -> str:
    """Return the machine's time zone, such as ``Europe/Paris``, or UTC."""
    name = os.environ.get("TZ", "").lstrip(":")
    if name and "/" in name and not name.startswith("/"):
        return name
    try:
        target = os.path.realpath("/etc/localtime")
    except OSError:
        return "UTC"
    return target.partition("zoneinfo/")[2] or "UTC"


def config_path(environment: Mapping[str, str] | None = None) -> Path:
    """Return the path of the user's ``smara.toml``."""
    environment = os.environ if environment is None else environment
    if environment.get("SMARA_CONFIG"):
        return Path(environment["SMARA_CONFIG"])
    return _user_folder(environment, "config") / "smara.toml"


def default_store(environment: Mapping[str, str] | None = None) -> Path:
    """The per-user store, in the platform's data folder."""
    environment = os.environ if environment is None else environment
    if environment.get("SMARA_HOME"):
        return Path(environment["SMARA_HOME"]) / "smara.db"
    return _user_folder(environment, "data") / "smara.db"


def store_exists(settings: Settings) -> bool:
    """Return True if the store exists; a server is assumed to."""
    if settings.db is None:
        return default_store().exists()
    file = store_file(settings.db)
    return file is None or os.path.exists(file)


def _user_folder(environment: Mapping[str, str], kind: Literal["config", "data"]) -> Path:
    if sys.platform in ("win32", "darwin"):
        import platformdirs

        find = platformdirs.user_config_path if kind == "config" else platformdirs.user_data_path
        return find("smara", appauthor=False)
    # Here the rule is one line, and importing platformdirs would cost a fifth of a search.
    variable, fallback = (
        ("XDG_CONFIG_HOME", ".config") if kind == "config" else ("XDG_DATA_HOME", ".local/share")
    )
    return Path(environment.get(variable) or Path.home() / fallback) / "smara"


def _from_file(environment: Mapping[str, str]) -> dict[str, Any]:
    path = config_path(environment)
    try:
        is_there = path.is_file()
    except OSError as error:
        raise ConfigError(
            f"{path} cannot be looked at: {error.strerror}. Check its permissions."
        ) from None
    if not is_there:
        if environment.get("SMARA_CONFIG"):
            raise ConfigError(
                f"SMARA_CONFIG names {path}, which does not exist. Create it or unset the variable."
            )
        return {}
    import tomllib

    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(
            f"{path} cannot be read: {error}. Mend it or move it away.", path=str(path)
        ) from None
    unknown = set(table) - {field.name for field in fields(Settings)}
    if unknown:
        raise ConfigError(
            f"{path} has unknown settings: {', '.join(sorted(unknown))}. See "
            "docs/reference/settings.md."
        )
    return {name: _check(name, value, str(path)) for name, value in table.items()}


def _read(name: str, text: str, source: str) -> Any:
    kind = _kind(name)
    if kind is bool:
        # A word that means neither is left for the check to refuse.
        return _check(name, _TRUTHS.get(text.strip().lower(), text), source)
    try:
        return _check(name, kind(text), source)
    except ValueError:
        raise ConfigError(f"{source}={text!r} is not a number. Give {name} as a number.") from None


def _kind(name: str) -> type[Any]:
    default = getattr(Settings(), name)
    return type(default) if isinstance(default, int | float) else str


def _check(name: str, value: Any, source: str) -> Any:
    kind = _kind(name)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if name == "retention" and isinstance(value, Mapping):
        value = "; ".join(f"{key} = {each}" for key, each in value.items())
    if kind is bool and not isinstance(value, bool):
        raise ConfigError(f"{source}: {name} must be true or false, not {value!r}.")
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise ConfigError(f"{source}: {name} must be {kind.__name__}, not {type(value).__name__}.")
    if name == "db" and not (value.startswith(SERVERS) or (value and store_file(value))):
        # Not the whole address: it may hold a password.
        raise ConfigError(
            f"{source}: {value.partition(':')[0]!r} is no kind of store. Give a path (notes.db, "
            "./notes.db), sqlite:///PATH, :memory:, or postgresql://USER@HOST/NAME."
        )
    if name == "public_url" and not _SERVER.fullmatch(value):
        raise ConfigError(
            f"{source}: {value!r} is not the address of a server. Give its scheme and host alone, "
            "such as https://smara.example.com."
        )
    if name in _CHOICES and value not in _CHOICES[name]:
        raise ConfigError(
            f"{source}: {name} must be one of {', '.join(_CHOICES[name])}, not {value!r}."
        )
    if isinstance(value, int | float) and not 0 <= value < float("inf"):
        raise ConfigError(f"{source}: {name} must not be negative or endless; got {value}.")
    return value
