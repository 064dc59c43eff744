"""An adapter whose framework is missing says what to install."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("module", "package", "extra"),
    [
        ("claude_agent", "claude_agent_sdk", "smara[claude-agent]"),
        ("openai_agents", "agents.memory", "smara[openai-agents]"),
    ],
)
def test_missing_framework_is_named_with_its_extra(module: str, package: str, extra: str) -> None:
    program = (
        "import sys\nfrom smara.errors import MissingExtraError\n"
        f"sys.modules[{package!r}] = None\n"
        f"try:\n    import smara.adapters.sdk.{module}\n"
        "except MissingExtraError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert f"pip install '{extra}'" in done.stdout, done.stderr
