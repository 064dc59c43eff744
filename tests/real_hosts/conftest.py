"""The agents themselves, against a scripted model: only where ``SMARA_REAL_HOSTS`` names the folder
of their programs.

    npm install --prefix /tmp/hosts @anthropic-ai/claude-code @openai/codex @google/gemini-cli
      @github/copilot \
        opencode-ai @earendil-works/pi-coding-agent
    SMARA_REAL_HOSTS=/tmp/hosts/node_modules/.bin .venv/bin/python -m pytest tests/real_hosts

Nothing leaves the machine: the model is a server on loopback, the home folder an empty one.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.real_hosts.lab import PROGRAMS, Lab

collect_ignore_glob = [] if PROGRAMS else ["test_*.py"]


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path)
