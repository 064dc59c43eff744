"""Codex CLI: its rollouts, read into threads and messages."""

from smara.adapters.codex.rollout import read_rollout

__all__ = ["read_rollout"]
