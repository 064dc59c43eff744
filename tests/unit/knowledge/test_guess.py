"""The type of a statement by its words: statements as people write them, and the type they are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smara.knowledge.guess import type_of
from smara.knowledge.models import TYPES

STATEMENTS = {
    "preference": [
        "Use uv, never pip", "Prefer composition over inheritance", "I like short answers",
        "Use single quotes in TypeScript", "Name test files after the module they test",
        "Keep functions small and focused", "Write commit messages in the imperative mood",
        "No semicolons, two spaces", "Async code: use anyio, not asyncio",
        "Avoid abbreviations in names",
        "Use named exports rather than default exports", "Favor early returns",
        "When writing React components, use hooks instead of classes", "Answer in German",
        "Sort imports with isort style",
    ],
    "requirement": [
        "Every endpoint must check permissions", "Never commit secrets or API keys",
        "Test coverage must stay above 80%", "All public functions must be documented",
        "Run the linter before every commit", "Pages must load within 2 seconds",
        "Do not push to main",
        "PII is never written to logs", "New tables need an owner column",
        "Responses must be backwards compatible",
        "Always validate user input on the server", "At most 3 retries are allowed",
    ],
    "gotcha": [
        "Beware: the cache is shared between tests",
        "The staging database is silently reset every night",
        "MutexGuard is not Send, so it cannot be held across await points",
        "Don't forget that dates from the API are in local time, which surprises everybody",
        "Watch out for the second argument of slice",
        "Unlike production, staging does not send mail; it silently drops it",
        "The build caches stale types; otherwise you get errors that are not there",
        "Note that fixtures are not reloaded by the watcher",
        "Changing the schema breaks the mobile app",
        "Timers are flaky on the CI runners",
    ],
    "decision": [
        "We chose PostgreSQL over MySQL because of its JSON support",
        "We decided to keep the monolith",
        "Decision: sessions are stored in Redis", "The team agreed on trunk-based development",
        "JWTs were chosen instead of sessions so that services stay stateless",
        "We moved away from GraphQL due to its caching problems", "ADR-12: events are append-only",
        "We deliberately do not use an ORM, to keep queries visible",
    ],
    "pattern": [
        "Lint: `make lint`", "Run the tests with `pytest -q`",
        "New handlers follow the pattern in `src/handlers/user.ts`",
        "All services extend `BaseService`",
        "Use the `withTenant` wrapper for every query",
        "See `src/forms/login.tsx` for an example of a form",
        "Every route goes through the `authorize` middleware",
        "```bash\nnpm run build\nnpm test\n```",
        "Repository classes mirror the tables",
    ],
    "module_insight": [
        "`src/auth/` handles login and sessions", "packages/db: the schema and its migrations",
        "The billing service talks to Stripe", "Stack: React, Fastify, PostgreSQL",
        "`src/main.rs` is the entry point",
        "The worker lives in `apps/worker` and is written in Go",
        "This is a monorepo with four packages", "The gateway is responsible for rate limiting",
    ],
    "error_pattern": [
        "If you see ECONNREFUSED, start the database with `docker compose up db`",
        "`ModuleNotFoundError: smara` means the virtual environment is not active",
        "When the build fails with an out-of-memory error, set "
        "NODE_OPTIONS=--max-old-space-size=8192",
        "TypeError: fetch failed is caused by the proxy. Fix: unset HTTP_PROXY",
        "If migrations hang, kill the idle connections first",
        "EADDRINUSE: an old server is running, restart the machine",
    ],
    "dead_end": [
        "We tried Redis streams for the queue, but failed to keep the order",
        "Caching in the client was tried and abandoned",
    ],
    "workflow_recipe": [
        "To release: 1. bump the version 2. tag it 3. push the tag",
        "Adding a locale:\n1. Copy en.json\n2. Translate it\n3. Register it in i18n.ts",
    ],
}  # fmt: skip
ALL = [(text, kind) for kind, texts in STATEMENTS.items() for text in texts]


@pytest.mark.parametrize(("text", "kind"), ALL, ids=[text[:50] for text, _ in ALL])
def test_statement_is_what_a_person_would_call_it(text, kind):
    guess = type_of(text)
    assert guess.type == kind, guess
    assert guess.why


@pytest.mark.parametrize(
    ("text", "headings", "kind"),
    [
        ("`data/*.db` are local files", ["Shop", "Gotchas"], "gotcha"),
        ("PDF: pdf-extract and lopdf", ["Shop", "Known issues"], "gotcha"),
        ("TypeScript: explicit", ["Code style"], "preference"),
        ("One row per tenant", ["Data model"], "module_insight"),
        ("`npm run e2e`", ["Commands"], "pattern"),
        ("The server sometimes answers 502", ["Troubleshooting"], "error_pattern"),
        ("Events over calls", ["Architecture decisions"], "decision"),
        ("Changelog entry", ["Definition of done"], "requirement"),
    ],
)
def test_headings_decide_where_the_words_do_not(text, headings, kind):
    assert type_of(text, headings).type == kind


def test_words_count_more_than_the_heading_above_them():
    assert type_of("Beware: the cache is shared between tests", ["Code style"]).type == "gotcha"


def test_notice_is_a_trap():
    assert (
        type_of("The test database is wiped by `npm run e2e`.", marks=["warning"]).type == "gotcha"
    )


def test_words_inside_code_are_not_read():
    assert type_of("`never_always_must()` lives in `src/rules.py`").type == "module_insight"


@given(st.text(max_size=300))
def test_any_text_has_a_type_and_a_reason_and_always_the_same(text):
    guess = type_of(text)
    assert guess.type in TYPES
    assert guess.why
    assert type_of(text) == guess


def test_giant_text_is_read_at_its_beginning():
    assert type_of("Use tabs. " + "must never " * 200_000).type in TYPES
