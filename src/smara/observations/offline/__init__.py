"""Observing and reflecting without a model: deterministic, fast, no key."""

from smara.observations.offline.observer import METHOD, OfflineObserver
from smara.observations.offline.reflector import OfflineReflector

__all__ = ["METHOD", "OfflineObserver", "OfflineReflector"]
