"""Metrics for Prometheus, in a registry of the application's own."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import (
    CONTENT_TYPE_PLAIN_0_0_4,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
)
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from firstpage.serving.watched_model import WatchedModel

MEDIA_TYPE = CONTENT_TYPE_PLAIN_0_0_4
BUCKETS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0)


class Metrics:
    """Counts of requests, and the state of the model in service."""

    def __init__(self, watched: WatchedModel) -> None:
        self.registry = new = CollectorRegistry()
        self.requests = Counter(
            "firstpage_requests", "Requests by route and status.", ("route", "status"), registry=new
        )
        self.seconds = Histogram(
            "firstpage_request_seconds", "From the head of a request to the end of its answer.",
            ("route",), buckets=BUCKETS, registry=new,
        )  # fmt: skip
        self.in_flight = Gauge(
            "firstpage_requests_in_flight", "Requests being answered.", registry=new
        )
        self.queries = Counter("firstpage_queries", "Queries ranked.", registry=new)
        self.candidates = Counter("firstpage_candidates", "Candidates scored.", registry=new)
        new.register(_ModelCollector(watched))

    def text(self) -> bytes:
        return generate_latest(self.registry)


class _ModelCollector(Collector):
    """Reads the state of the model when it is asked for."""

    def __init__(self, watched: WatchedModel) -> None:
        self.watched = watched

    def collect(self) -> Iterator[Metric]:
        watched, model = self.watched, self.watched.model
        for kind, name, text, value in (
            (CounterMetricFamily, "reloads", "Models that replaced another.", watched.reloads),
            (CounterMetricFamily, "refusals", "Model files refused.", watched.refusals),
            (GaugeMetricFamily, "stale", "1: the file there is refused.", bool(watched.refused)),
            (GaugeMetricFamily, "up", "1: a model is served.", model is not None),
        ):
            yield kind(f"firstpage_model_{name}", text, value=value)
        if model is not None:
            labels = {"ranker": model.model.ranker, "digest": model.digest}
            yield InfoMetricFamily("firstpage_model", "The model in service.", labels)
            yield GaugeMetricFamily(
                "firstpage_model_since_seconds", "When it was loaded, in Unix time.", model.since
            )
