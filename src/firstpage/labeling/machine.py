"""Let a program label a query: the same sessions, strategies and log as for people."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from firstpage.labeling.assessors import Assessor, Text
from firstpage.labeling.events import Judged, to_dict
from firstpage.labeling.session import Session

Fetch = Callable[[str], Text]  # a document by its key


def label(
    session: Session,
    assessor: Assessor,
    query: str,
    documents: Mapping[str, str] | Fetch,
    most: int | None = None,
) -> Iterator[tuple[Judged, dict[str, Any]]]:
    """Answer what is open until it is done, or `most` answers; yields each judgment with its cost.

    The judgment stands when it is yielded; who stores the log stores it then.
    """
    fetch = documents if callable(documents) else _of(documents)
    given = 0
    while (shown := session.question) is not None and (most is None or given < most):
        right = None if shown.right is None else fetch(shown.right)
        verdict = assessor.judge(query, fetch(shown.left), right)
        event = session.answer(verdict.outcome, verdict.bad, verdict.skipped is not None)
        given += 1
        yield event, {**to_dict(event), "cost": dict(verdict.cost)}


def _of(texts: Mapping[str, str]) -> Fetch:
    return lambda key: Text(key, texts[key])
