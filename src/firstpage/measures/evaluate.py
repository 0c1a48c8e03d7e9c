"""evaluate(): measures of one system, per query and on average."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from firstpage.data.ids import Ids
from firstpage.data.shards.shards import Shards
from firstpage.engine.addresses import open_engine
from firstpage.errors import DataError, MeasureError
from firstpage.measures.inputs import DEPTH, make_lists
from firstpage.measures.measure import Convention, Measure, Queries, Ties
from firstpage.measures.measure import convention as named_convention
from firstpage.measures.registry import Named, by_text
from firstpage.measures.sharded import shard_values
from firstpage.measures.significance import mean_intervals
from firstpage.types import Floats

DEFAULT_MEASURES = ("NDCG@10", "AP", "P@10", "RR")


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Means by measure (`found["NDCG@10"]`), values by query, confidence intervals if asked for.

    Keys are the texts by which the measures were asked for.
    """

    texts: tuple[str, ...]
    measures: tuple[Measure, ...]
    queries: Ids
    values: Floats  # one row a measure, one column a query
    convention: Convention
    intervals: dict[str, tuple[float, float]] = field(default_factory=dict)
    name: str = ""

    def __getitem__(self, text: str) -> float:
        return float(self.per_query(text).mean())

    def per_query(self, text: str) -> Floats:
        """The value of every query, in the order of `queries`."""
        if text not in self.texts:
            raise KeyError(f"{text!r} was not measured; {', '.join(self.texts)} were")
        row: Floats = self.values[self.texts.index(text)]
        return row

    @property
    def means(self) -> dict[str, float]:
        return {text: self[text] for text in self.texts}

    def to_dict(self) -> dict[str, Any]:
        """What `--json` prints."""
        found: dict[str, Any] = {
            "measures": self.means,
            "queries": len(self.queries),
            "convention": self.convention.name,
        }
        if self.intervals:
            found["ci"] = {text: list(bounds) for text, bounds in self.intervals.items()}
        return found

    def __str__(self) -> str:
        width = max(len(text) for text in self.texts)
        lines = [f"{len(self.queries)} queries, convention {self.convention.name}"]
        for text, mean in self.means.items():
            ci = ""
            if text in self.intervals:
                ci = "  [{:.4f}, {:.4f}]".format(*self.intervals[text])
            lines.append(f"{text:<{width}}  {mean:.4f}{ci}")
        return "\n".join(lines)

    __repr__ = __str__


def evaluate(
    system: Any,
    truth: Any,
    *,
    qid: Any = None,
    docid: Any = None,
    measures: Named | Iterable[Named] = DEFAULT_MEASURES,
    convention: str | Convention = "default",
    k: int | None = None,
    ties: Ties | None = None,
    rel: float | None = None,
    queries: Queries | None = None,
    depth: int | None = None,
    seed: int | None = None,
    ci: bool = False,
    name: str = "",
    engine: Any = None,
) -> Evaluation:
    """Measure a ranking against the truth.

    system    scores, one a document; or a Run, or {query: {document: score}}; for Shards also a
              fitted ranker, which scores them
    truth     labels, one a document, with `qid`; a Dataset; Shards; a Truth; or Qrels, or a
              dictionary
    measures  texts such as "NDCG@10", "kERR", "AP(rel=2)", "NDCG(measure.json)@10"; or a Utility
    k         first turn graded labels into a top-k truth of this depth
    ci        add 95 % bootstrap intervals of the means
    engine    for Shards, where to work: "threads", "dask://host:port" or a Dask Client

    One warning per run names what it and the judgments lack of each other: judged queries that it
    misses, its queries that are not judged, and the fraction of unjudged documents in the top k
    (the deepest cut-off, or 10).

    `convention` ("default", "trec", "letor") and the settings after it say what is meant; see
    docs/conventions.md.  Higher is better for all but TopK01, Perm01 and WKT.
    """
    how = named_convention(convention, ties=ties, rel=rel, queries=queries, depth=depth, seed=seed)
    asked = by_text(measures if measures is not None else [])
    if not asked:
        raise MeasureError("name at least one measure, such as NDCG@10.")
    if isinstance(truth, Shards):
        if qid is not None or docid is not None:
            raise DataError("Shards have query and document ids of their own.")
        with open_engine(engine) as place:
            values, ids = shard_values(system, truth, tuple(asked.values()), how, k, place)
        return _evaluation(asked, ids, values, how, ci, name)
    if engine is not None:
        raise DataError("engine goes with Shards (fp.read_shards); the truth is in memory.")
    depth = max((getattr(m, "cutoff", None) or 0 for m in asked.values()), default=0) or DEPTH
    lists = make_lists(system, truth, how, qid, docid, k, name, depth)
    if not len(lists):
        raise DataError("there is no query to measure.")
    values = np.array([m.values(lists, how) for m in asked.values()])
    return _evaluation(asked, lists.queries, values, how, ci, name)


def _evaluation(
    asked: dict[str, Measure], queries: Ids, values: Floats, how: Convention, ci: bool, name: str
) -> Evaluation:
    intervals = zip(asked, mean_intervals(values, how.seed), strict=True) if ci else ()
    return Evaluation(
        tuple(asked), tuple(asked.values()), queries, values, how, dict(intervals), name
    )
