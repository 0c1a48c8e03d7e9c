"""What a request may cost, and how a request is refused: a status and one line."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Everything that a client could otherwise make us spend.

    candidates  of one query
    queries     of one batch
    bytes       of one body
    at_once     requests read or answered at the same time
    connections open at the same time, silent ones included
    explained   candidates of one answer that are explained
    reasons     features named in one answer
    seconds     until a body must have come
    """

    candidates: int = 1000
    queries: int = 1000
    bytes: int = 8 << 20
    at_once: int = 64
    connections: int = 1000
    explained: int = 10_000
    reasons: int = 200_000
    seconds: float = 10.0


class Refusal(Exception):
    """A request that is not answered; `detail` is one line for whoever sent it."""

    def __init__(self, status: int, detail: str, **headers: str) -> None:
        super().__init__(detail)
        self.status, self.detail = status, " ".join(detail.split())
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


def too_many_bytes(limits: Limits) -> Refusal:
    return Refusal(
        413,
        f"the body is longer than {limits.bytes:,} bytes, the limit of this server; send fewer "
        "candidates, or a binary body, or start the server with a greater --max-bytes.",
    )


def check_candidates(count: int, limits: Limits, where: str) -> None:
    """From 1 up to the limit."""
    if count > limits.candidates:
        raise Refusal(
            413,
            f"{where} has {count:,} candidates, and this server takes {limits.candidates:,} of a "
            "query; send fewer, or start the server with a greater --max-candidates.",
        )
    if not count:
        raise Refusal(422, f"{where} has no candidates.")


def check_explained(rows: int, reasons: int, limits: Limits) -> None:
    """Explanations take far more time and room than scores."""
    if rows > limits.explained or reasons > limits.reasons:
        raise Refusal(
            413,
            f"{rows:,} candidates would be explained by {reasons:,} features, and this server "
            f"explains {limits.explained:,} by {limits.reasons:,} at once; ask for a smaller 'top' "
            "or 'explain'.",
        )


def check_queries(count: int, limits: Limits) -> None:
    if count > limits.queries:
        raise Refusal(
            413,
            f"the batch has {count:,} queries, and this server takes {limits.queries:,} at once; "
            "send several batches, or start the server with a greater --max-queries.",
        )
    if not count:
        raise Refusal(422, "the batch has no queries.")
