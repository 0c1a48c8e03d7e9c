"""Times as a browser reports them: repaired where they cannot be true, never a reason to refuse.

Whatever is changed is recorded beside the answer, as `adjusted_times` of its event in the log.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from firstpage.web.api.bodies import AnswerBody, Span
from firstpage.web.store.connect import iso
from firstpage.web.store.log import SPAN_KINDS, Timing

MAX_SPAN_MS = 24 * 60 * 60 * 1000
MAX_SPANS = 500
FIRST_YEAR = 2000
MAX_AHEAD = timedelta(days=1)  # of the server's clock; an answer from the past may just be late


def answer_timing(body: AnswerBody, comment: str | None, now: datetime) -> Timing:
    """Return the times of an answer; a device's wrong clock is set right by the server's `now`."""
    repair = _Repair(now)
    answered = _parsed(body.answered_at)
    if answered is not None and not repair.plausible(answered):
        repair.set_clock(answered)
    shown_at = repair.moment("shown_at", body.shown_at)
    answered_at = repair.moment("answered_at", body.answered_at)
    spans = repair.spans(body.spans)
    return Timing(shown_at, answered_at, spans, comment, adjusted=repair.adjusted)


def span_timing(spans: Sequence[Span], now: datetime) -> Timing:
    """Return time that ended without an answer."""
    return Timing(spans=_Repair(now).spans(spans))


@dataclass
class _Repair:
    """Makes reported times plausible and keeps account of what it changed."""

    now: datetime
    offset: timedelta = timedelta(0)
    adjusted: dict[str, Any] = field(default_factory=dict)

    def plausible(self, moment: datetime) -> bool:
        return moment.year >= FIRST_YEAR and moment <= self.now + MAX_AHEAD

    def set_clock(self, answered: datetime) -> None:
        """The device's clock is wrong: take the answer to be given now, and shift all else."""
        self.offset = self.now - answered
        self.adjusted["clock_offset_ms"] = round(self.offset / timedelta(milliseconds=1))

    def moment(self, name: str, text: str | None) -> str | None:
        """Return a time by the server's clock; None where it is unreadable or impossible."""
        parsed = _parsed(text)
        try:
            shifted = None if parsed is None else parsed + self.offset
        except OverflowError:
            shifted = None
        if shifted is not None and self.plausible(shifted):
            return iso(shifted)
        if text is not None:
            dropped = self.adjusted.setdefault("dropped", [])
            if name not in dropped:
                dropped.append(name)
        return None

    def spans(self, reported: Sequence[Span]) -> tuple[dict[str, Any], ...]:
        """Return spans of at most a day each, and at most `MAX_SPANS` of them."""
        kept = [self._span(span) for span in reported]
        clipped = sum("reported_ms" in span for span in kept)
        if clipped:
            self.adjusted["clipped_spans"] = clipped
        if len(kept) <= MAX_SPANS:
            return tuple(kept)
        self.adjusted["merged_spans"] = len(kept)
        return tuple(_total(kept, kind) for kind in SPAN_KINDS)

    def _span(self, span: Span) -> dict[str, Any]:
        reported = math.nan if span.ms is None else span.ms
        ms = 0 if math.isnan(reported) else round(min(max(reported, 0.0), MAX_SPAN_MS))
        kept: dict[str, Any] = {"kind": span.kind, "ms": ms}
        start = self.moment("start", span.start)
        if start is not None:
            kept["start"] = start
        if not abs(reported - ms) < 1:
            kept["reported_ms"] = span.ms if math.isfinite(reported) else str(span.ms)
        return kept


def _total(spans: Sequence[Mapping[str, Any]], kind: str) -> dict[str, Any]:
    same = [span["ms"] for span in spans if span["kind"] == kind]
    return {"kind": kind, "ms": sum(same), "merged": len(same)}


def _parsed(text: str | None) -> datetime | None:
    """Return a time in ISO form, in UTC where it names no zone; None where it is unreadable."""
    try:
        parsed = datetime.fromisoformat(text or "")
        return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
