"""Count requests for Prometheus, and read the queue of a fleet.

No label holds an id, a project or a text.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from smara import __version__
from smara.errors import SmaraError
from smara.surfaces.http.problem import Refusal
from smara.surfaces.http.store import Store

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class Metrics:
    """The counts of one server; without prometheus-client nothing is counted."""

    def __init__(self) -> None:
        self._registry: Any = None
        try:
            import prometheus_client as prometheus
        except ImportError:
            return
        self._registry = registry = prometheus.CollectorRegistry()
        prometheus.ProcessCollector(registry=registry)
        prometheus.Info("smara", "The release of Smara.", registry=registry).info(
            {"version": __version__}
        )
        self._requests = prometheus.Counter(
            "smara_http_requests",
            "Requests that were answered.",
            ("method", "route", "status"),
            registry=registry,
        )
        self._seconds = prometheus.Histogram(
            "smara_http_request_seconds",
            "How long requests took.",
            ("route",),
            buckets=_SECONDS,
            registry=registry,
        )
        self._running = prometheus.Gauge(
            "smara_http_requests_in_progress", "Requests that are answered now.", registry=registry
        )

    def in_progress(self) -> AbstractContextManager[object]:
        """Count a request as running."""
        if self._registry is None:
            return nullcontext()
        return self._running.track_inprogress()

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count an answered request."""
        if self._registry is not None:
            verb = method if method in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE") else "?"
            self._requests.labels(verb, route, str(status)).inc()
            self._seconds.labels(route).observe(seconds)

    def render(self, store: Store) -> bytes:
        """Return the metrics in the text format of Prometheus.

        Raises:
            Refusal: If prometheus-client is not installed.
        """
        if self._registry is None:
            raise Refusal(
                404,
                "no_metrics",
                "Metrics need the package prometheus-client: pip install 'smara[telemetry]'.",
            )
        from prometheus_client import CollectorRegistry, generate_latest

        # Asked for at each look, and only here: a fleet need not run beside this process.
        fleet: Any = CollectorRegistry()
        fleet.register(_FleetCollector(store))
        return bytes(generate_latest(self._registry) + generate_latest(fleet))


class _FleetCollector:
    """The queue of the store, if it has one."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def describe(self) -> list[Any]:
        return []

    def collect(self) -> Iterator[Any]:
        from prometheus_client.core import GaugeMetricFamily as Gauge

        from smara.fleet.queue import find_queue  # it loads all that observes

        up = Gauge("smara_store_up", "1 if the store answers.")
        try:
            with self._store.memory() as memory, memory.internals.database.read():
                queue = find_queue(memory)
                counts, workers = (queue.counts(), queue.workers()) if queue else ([], None)
            up.add_metric([], 1)
        except SmaraError:
            up.add_metric([], 0)
            yield up
            return
        yield up
        if workers is None:
            return
        jobs = Gauge("smara_fleet_jobs", "Jobs of a queue by state.", labels=("queue", "state"))
        oldest = Gauge(
            "smara_fleet_oldest_job_seconds",
            "How long the oldest job that can run has waited.",
            labels=("queue",),
        )
        for each in counts:
            for state in ("waiting", "running", "stalled", "failed"):
                jobs.add_metric([each.queue, state], getattr(each, state))
            oldest.add_metric([each.queue], each.oldest_seconds)
        help_text = "Queues that are served: each worker process serves four."
        alive = Gauge("smara_fleet_workers", help_text, labels=("state",))
        alive.add_metric(["alive"], workers[0])
        alive.add_metric(["gone"], workers[1])
        yield from (jobs, oldest, alive)
