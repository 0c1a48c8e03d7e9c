"""Counters in the text format of Prometheus."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter

from firstpage.serving.holder import Holder

MEDIA = "text/plain; version=0.0.4; charset=utf-8"
BUCKETS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0)


class Metrics:
    """Written and read by the event loop alone."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, int]] = Counter()
        self.times: dict[str, list[int]] = {}
        self.seconds: Counter[str] = Counter()
        self.busy = 0
        self.queries = 0
        self.candidates = 0

    def count(self, route: str, status: int, seconds: float) -> None:
        self.requests[route, status] += 1
        counts = self.times.setdefault(route, [0] * (len(BUCKETS) + 1))
        counts[bisect_left(BUCKETS, seconds)] += 1
        self.seconds[route] += seconds  # type: ignore[assignment]

    def text(self, holder: Holder) -> str:
        lines = [
            *_head("requests_total", "counter", "Requests by route and status."),
            *(
                f'firstpage_requests_total{{route="{route}",status="{status}"}} {count}'
                for (route, status), count in sorted(self.requests.items())
            ),
            *_head("request_seconds", "histogram", "From the request's head to its answer."),
        ]
        for route in sorted(self.times):
            lines += self._histogram(route)
        served = holder.served
        for name, kind, what, value in (
            ("requests_in_flight", "gauge", "Requests being answered.", self.busy),
            ("queries_total", "counter", "Queries ranked.", self.queries),
            ("candidates_total", "counter", "Candidates scored.", self.candidates),
            ("model_reloads_total", "counter", "Models that took another's place.", holder.reloads),
            ("model_refusals_total", "counter", "Model files refused.", holder.refusals),
            ("model_stale", "gauge", "1: the file there is refused.", int(bool(holder.refused))),
            ("model_up", "gauge", "1: a model is served.", int(served is not None)),
        ):
            lines += [*_head(name, kind, what), f"firstpage_{name} {value}"]
        if served is not None:
            lines += [
                *_head("model_info", "gauge", "The model in service."),
                f'firstpage_model_info{{ranker="{_escaped(served.model.ranker)}",'
                f'digest="{served.digest}"}} 1',
                *_head("model_since_seconds", "gauge", "When it was loaded, in Unix time."),
                f"firstpage_model_since_seconds {served.since:.3f}",
            ]
        return "\n".join(lines) + "\n"

    def _histogram(self, route: str) -> list[str]:
        name, total, lines = "firstpage_request_seconds", 0, []
        for bound, count in zip((*BUCKETS, "+Inf"), self.times[route], strict=True):
            total += count
            lines.append(f'{name}_bucket{{route="{route}",le="{bound}"}} {total}')
        lines.append(f'{name}_sum{{route="{route}"}} {self.seconds[route]:.6f}')
        lines.append(f'{name}_count{{route="{route}"}} {total}')
        return lines


def _head(name: str, kind: str, what: str) -> list[str]:
    return [f"# HELP firstpage_{name} {what}", f"# TYPE firstpage_{name} {kind}"]


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
