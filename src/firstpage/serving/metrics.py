"""Prometheus metrics, in a registry per application."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4 as MEDIA_TYPE
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from firstpage.serving.event_log import EventLog
from firstpage.serving.served_model import ServedModel
from firstpage.serving.watched_model import WatchedModel
from firstpage.serving.workers import METRICS_FOLDER, RemoteLog

__all__ = ["MEDIA_TYPE", "Metrics"]
COUNTED = ("firstpage_requests", "firstpage_request_seconds")
OTHER = "other"  # the route of static files and unknown addresses
BUCKETS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0)


class RouteSummary(NamedTuple):
    """What was requested from a route: numbers of requests, and their mean time in seconds."""

    route: str
    requests: int
    refused: int
    seconds: float


class Metrics(Collector):
    """Counters of requests, and the state of the model at the time of a scrape.

    With several workers, the counters are those of all.
    """

    def __init__(self, watched: WatchedModel, events: EventLog | RemoteLog | None = None) -> None:
        self.watched, self.events, self.registry = watched, events, CollectorRegistry()
        shared = METRICS_FOLDER in os.environ
        own = CollectorRegistry() if shared else self.registry
        self.counted = MultiProcessCollector(self.registry) if shared else own  # type: ignore[no-untyped-call]
        common: dict[str, Any] = {"namespace": "firstpage", "registry": own}
        by_route = ("route", "status")
        self.requests = Counter("requests", "Requests by route and status.", by_route, **common)
        self.seconds = Histogram(
            "request_seconds",
            "From the head of a request to the end of its answer.",
            by_route[:1],
            buckets=BUCKETS,
            **common,
        )
        in_flight = {"multiprocess_mode": "livesum", **common}
        self.in_flight = Gauge("requests_in_flight", "Requests being answered.", **in_flight)
        self.queries = Counter("queries", "Queries ranked.", **common)
        self.candidates = Counter("candidates", "Candidates scored.", **common)
        self.registry.register(self)

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics of the model in service and of the event log."""
        watched, model = self.watched, self.watched.model
        counter, gauge = CounterMetricFamily, GaugeMetricFamily
        for kind, name, text, value in (
            (counter, "reloads", "Models that replaced another.", watched.reloads),
            (counter, "refusals", "Model files refused.", watched.refusals),
            (gauge, "stale", "1: the current model file is refused.", watched.refused is not None),
            (gauge, "up", "1: a model is in service.", model is not None),
        ):
            yield kind(f"firstpage_model_{name}", text, value=float(value))
        if self.events is not None:
            counts = self.events.counts()
            for kind, name, text, value in (
                (counter, "stored", "Queries and events stored.", counts["stored"]),
                (counter, "known", "Queries and events sent again.", counts["known"]),
                (counter, "dropped", "Queries and events not stored.", counts["dropped"]),
                (counter, "commits", "Waits for the disk.", counts["commits"]),
                (gauge, "bytes", "Size of the event log.", counts["size"]),
            ):
                yield kind(f"firstpage_events_{name}", text, value=float(value))
        if model is not None:
            labels = {"ranker": model.model.ranker, "digest": model.digest}
            yield InfoMetricFamily("firstpage_model", "The model in service.", labels)
            loaded = "Unix time at which the model was loaded."
            yield gauge("firstpage_model_since_seconds", loaded, model.since)
            yield from _drift(model)

    def routes(self) -> list[RouteSummary]:
        """Return what was requested since the start by route, the most requested first.

        Static files and unknown addresses are left out.
        """
        seconds, requests = COUNTED[1], f"{COUNTED[0]}_total"
        counts: dict[str, dict[str, float]] = {}
        for metric in self.counted.collect():
            for sample in metric.samples if metric.name in COUNTED else ():
                values = counts.setdefault(sample.labels["route"], defaultdict(float))
                values[sample.name] += sample.value
                if sample.name == requests and sample.labels["status"] >= "400":
                    values["refused"] += sample.value
        summaries = [
            RouteSummary(
                route,
                int(values[requests]),
                int(values["refused"]),
                values[f"{seconds}_sum"] / values[f"{seconds}_count"],
            )
            for route, values in counts.items()
            if values[f"{seconds}_count"] and route != OTHER
        ]
        return sorted(summaries, key=lambda each: (-each.requests, each.route))

    def text(self) -> bytes:
        """Return all metrics in the text format of Prometheus."""
        return generate_latest(self.registry)


def _drift(model: ServedModel) -> Iterator[Metric]:
    """Yield the drift of the score and of each feature, where the model file describes them."""
    if model.drift is None:
        return
    total, rows = model.drift.rows(model.names)
    yield GaugeMetricFamily("firstpage_drift_documents", "Documents counted for drift.", total)
    text = "Population stability index against the training data; 0.25 and more is large."
    score = GaugeMetricFamily("firstpage_score_drift", text)
    features = GaugeMetricFamily("firstpage_feature_drift", text, labels=["feature"])
    for row in rows[:1]:
        score.add_metric([], row.psi)
    for row in rows[1:]:
        features.add_metric([row.name], row.psi)
    yield from (score, features)
