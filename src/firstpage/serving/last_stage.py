"""The last stage of a search: an assessor reorders the first documents, if it is in time."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from firstpage.core import Array, FirstpageError, Ints, plain_text
from firstpage.core.http import Stopped
from firstpage.data import Run
from firstpage.labeling import ListAssessor, Reranker, document_text
from firstpage.search import Index

log = logging.getLogger("firstpage.serving")
SHOWN = 20  # documents that the assessor orders, in one call
THREADS = 16  # calls at a time


@dataclass(frozen=True)
class LastStage:
    """Reorders the first documents of a search by one question to an assessor.

    Attributes
    ----------
    assessor : ListAssessor
        The assessor.
    seconds : float
        Time after which the order of the model is returned.
    reopen : callable or None
        Returns the same last stage in another process.
    """

    assessor: ListAssessor
    seconds: float
    reopen: Callable[[], LastStage | None] | None = None
    _pool: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(THREADS, "rerank"), repr=False
    )

    def __reduce__(self) -> Any:
        if self.reopen is None:
            return LastStage, (self.assessor, self.seconds)  # without its threads
        return self.reopen, ()  # in a worker: assessors have connections and threads of their own

    def reorder(self, index: Index, text: str, rows: Ints, order: Ints) -> tuple[Ints, bool]:
        """Return the order of the candidates, and whether the assessor decided it.

        If it fails or takes too long, that is logged, and the order of the model is returned.
        """
        first = order[:SHOWN]
        if len(first) < 2:
            return order, False
        sources = index.engine.sources(rows[first].tolist())
        keys = [str(position) for position in first.tolist()]
        texts = {key: document_text(key, source) for key, source in zip(keys, sources, strict=True)}
        run = Run.from_arrays(["q"] * len(keys), keys, np.arange(len(keys), 0, -1))
        reranker = Reranker(self.assessor, depth=SHOWN, calls=1)
        waiting = self._pool.submit(
            reranker.rerank, run, {"q": text}, lambda _, document: texts[document]
        )
        try:
            result = waiting.result(self.seconds)
        except (TimeoutError, FirstpageError, Stopped) as error:
            waiting.cancel()
            late = isinstance(error, TimeoutError)
            reason = f"no answer in {self.seconds:g} s" if late else plain_text(error)
            log.warning("the last stage is left out of a search: %s", reason)
            return order, False
        if result.queries[0].malformed:
            log.warning("the last stage is left out of a search: its answer is malformed.")
            return order, False
        top: Array = np.array([int(key) for key in result.run.docids], np.int64)
        return np.concatenate([top, order[SHOWN:]]), True
