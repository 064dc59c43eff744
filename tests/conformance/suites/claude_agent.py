"""The Claude Agent SDK: its conformance suite for session stores, against ours."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from claude_agent_sdk.testing import run_session_store_conformance

import smara
from smara.adapters.sdk.claude_agent import SmaraSessionStore
from tests.conformance.suite import CaseResult, Suite


def check(address: str) -> Iterator[CaseResult]:
    """Yield an outcome for each contract; a fresh store is made once before the first, and one
    for each.
    """
    made = 0
    failure: BaseException | None = None
    with smara.open(address, token_model="estimate") as memory:

        def make_store() -> SmaraSessionStore:
            nonlocal made
            made += 1
            return SmaraSessionStore(memory.in_project(f"contract-{made}"))

        try:
            asyncio.run(run_session_store_conformance(make_store))
        except Exception as error:
            failure = error
    for number in range(1, made):
        is_last = failure is not None and number == made - 1
        message = f"{type(failure).__name__}: {failure}" if is_last else ""
        yield CaseResult(f"contract {number}", "failed" if is_last else "passed", message)


SUITES = (
    Suite(
        "Claude Agent SDK: session store",
        package="claude-agent-sdk",
        covers="`smara.adapters.sdk.claude_agent.SmaraSessionStore`",
        check=check,
        remark="The suite stops at the first contract that fails.",
    ),
)
