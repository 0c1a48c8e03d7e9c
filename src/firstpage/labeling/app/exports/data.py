"""Features and labels of the judged documents, as one data set to train on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from firstpage.core import DataError
from firstpage.data import Dataset, Run
from firstpage.data.formats import read_letor
from firstpage.labeling.app.analysis.truth import QueryTruth, truths
from firstpage.labeling.app.exports.make import check_tool
from firstpage.labeling.app.store import Project, Tx
from firstpage.search import Index, TextFeatures, choose_features

if TYPE_CHECKING:
    from firstpage.core import Progress


@dataclass(frozen=True)
class FeatureSource:
    """Where features come from: an index, or a LETOR file; `notes` on what has changed."""

    index: Index | None = None
    letor: Path | None = None
    notes: tuple[str, ...] = ()


def feature_source(
    project: Project, index: Path | None = None, letor: Path | None = None
) -> FeatureSource:
    """Return the source of features: what is given, else what the project has recorded."""
    if index is not None:
        return FeatureSource(index=Index(index))
    if letor is not None:
        return FeatureSource(letor=letor)
    recorded: Mapping[str, Any] = project.source or {}
    if "letor" in recorded:
        path = Path(recorded["letor"]["path"])
        if not path.is_file():
            raise DataError(f"{path}: the LETOR file of the project is gone; name it (--letor).")
        return FeatureSource(letor=path)
    if "index" not in recorded:
        raise DataError(
            f"the project {project.slug!r} knows no features, as it was set up without an index "
            "and without a LETOR file; name the index of its documents (--index)."
        )
    path = Path(recorded["index"]["path"])
    if not path.is_dir():
        raise DataError(f"{path}: the index of the project is gone; name it (--index).")
    opened = Index(path)
    if opened.fingerprint == recorded["index"]["fingerprint"]:
        return FeatureSource(index=opened)
    return FeatureSource(
        index=opened,
        notes=(
            f"{path}: fields, analyzers or latent space have changed since the project was set up; "
            "the features are those of today.",
        ),
    )


def dataset(
    tx: Tx,
    project: Project,
    source: FeatureSource,
    features: str | None = None,
    tool: str | None = None,
    progress: Progress | None = None,
    partial: bool = False,
) -> tuple[Dataset, list[str]]:
    """Return the judged documents with features and labels, and notes on what is left out.

    With `partial` unfinished queries have the labels of the answers so far.  Features of an index
    are chosen by these labels unless they are named.
    """
    check_tool(project, "data.parquet", tool)
    if (tool or project.tool) == "lists":
        raise DataError("the tool lists compares pages, not documents, which alone have features.")
    judged = truths(tx, project, tool, partial)
    if not judged:
        raise DataError(
            f"the project {project.slug!r} has no finished query yet, so there are no data."
        )
    if source.index is not None:
        data, notes = _index_data(judged, source.index, features, progress)
    else:
        assert source.letor is not None
        data, notes = _letor_data(judged, source.letor)
    return replace(data, source=project.slug), [*source.notes, *notes]


def _index_data(
    judged: Sequence[QueryTruth], index: Index, features: str | None, progress: Progress | None
) -> tuple[Dataset, list[str]]:
    """Return features of an index; documents that it does not contain are left out."""
    known = index.forward.row_of
    documents = {t.query: [key for key in t.documents if key in known] for t in judged}
    missing = [repr(key) for t in judged for key in t.documents if key not in known]
    notes = []
    if missing:
        notes.append(
            f"{len(missing):,} documents are left out, since {index.path} does not contain them, "
            f"such as {missing[0]}."
        )
    run = Run.from_dict(
        {
            query: {key: -float(rank) for rank, key in enumerate(keys)}
            for query, keys in documents.items()
            if keys
        }
    )
    if not len(run):
        raise DataError(f"{index.path}: contains none of the judged documents; is it their index?")
    texts = [(t.query, t.text) for t in judged]
    data = TextFeatures(index, features or "all").dataset(texts, run, progress=progress)
    labels = [t.labels[key] for t in judged for key in documents[t.query]]
    labeled = replace(data.with_labels(labels), source=str(index.path))
    return labeled if features else choose_features(labeled), notes


def _letor_data(judged: Sequence[QueryTruth], path: Path) -> tuple[Dataset, list[str]]:
    """Return the features of a LETOR file, whose labels are replaced."""
    data = read_letor(path)
    rows = {query: row for row, query in enumerate(data.queries)}
    changed = f"{path}: is not the file that the project was set up with"
    missing = next((t.query for t in judged if t.query not in rows), None)
    if missing is not None:
        raise DataError(f"{changed}; query {missing!r} is missing.")
    chosen = data[[rows[t.query] for t in judged]]
    if chosen.docids is None:
        raise DataError(f"{changed}; it names no documents.")
    names, ends = list(chosen.docids), chosen.offsets.tolist()
    labels: list[int] = []
    for truth, lo, hi in zip(judged, ends, ends[1:], strict=False):
        if sorted(names[lo:hi]) != sorted(truth.documents):
            raise DataError(f"{changed}; query {truth.query!r} has other documents.")
        labels += [truth.labels[name] for name in names[lo:hi]]
    return chosen.with_labels(labels), []
