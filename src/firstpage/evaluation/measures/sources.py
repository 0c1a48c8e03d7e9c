"""What `evaluate` and `compare` accept: files, data frames, rankers, arrays, dictionaries."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from firstpage.core import DataError
from firstpage.data import (
    DOCUMENT_NAMES,
    GRADE_NAMES,
    QUERY_NAMES,
    Column,
    Dataset,
    Qrels,
    Run,
    Truth,
    find_column,
    frame_numbers,
    is_frame,
)
from firstpage.data.formats import (
    STANDARD_INPUT,
    DiversityQrels,
    format_of,
    read,
    read_diversity_qrels,
    read_judgments,
    read_qrels,
    read_run,
    read_scores,
    to_qrels,
)
from firstpage.data.io import open_bytes
from firstpage.data.shards import Shards, is_shard_folder, read_shards
from firstpage.evaluation.measures.base import Measure

PATTERN_SIGNS = "*?["


def is_path(value: Any) -> bool:
    """Return whether a value names a file: a string or a path."""
    return isinstance(value, (str, os.PathLike))


def read_truth(truth: Any, measures: Iterable[Measure] = ()) -> Any:
    """Return the truth; a file of judgments or of labeled data, or a folder of shards, is read.

    Measures of diversity take a file, or nested mappings, with judgments of subtopics.
    """
    if any(measure.of_subtopics for measure in measures):
        if is_path(truth):
            return read_diversity_qrels(truth)
        if isinstance(truth, Mapping) and _has_subtopics(truth):
            return DiversityQrels.from_dict(truth)
    if not is_path(truth):
        return column_of_records(truth, Qrels, "relevance")
    path = Path(truth)
    if str(path) == STANDARD_INPUT:
        return read_qrels(path)
    if is_shard_folder(path):
        return read_shards(path)
    if format_of(path) in ("qrels", "truth"):
        return read_judgments(path)
    labeled = read(path)
    if isinstance(labeled, Run):
        raise DataError(f"{path}: is a run, not judgments or labeled data.")
    return labeled


def _has_subtopics(truth: Mapping[Any, Any]) -> bool:
    """Return whether a mapping is {query: {subtopic: {document: grade}}}."""
    inner = (value for query in truth.values() for value in getattr(query, "values", tuple)())
    return isinstance(next(inner, None), Mapping)


def column_of_records(values: Any, kind: type[Column], field: str) -> Any:
    """Return records as ir_measures and ir_datasets have them as a column; others as they are.

    A record has query_id, doc_id and the value as attributes, or as keys of a dictionary.
    """
    records = list(values) if isinstance(values, Iterator) else values
    fields = ("query_id", "doc_id", field)
    if not isinstance(records, list) or not records:
        return records
    get = itemgetter if isinstance(records[0], Mapping) else attrgetter
    try:
        get(*fields)(records[0])
    except (AttributeError, KeyError):
        return records
    try:
        queries, documents, numbers = zip(*map(get(*fields), records), strict=True)
    except (AttributeError, KeyError, TypeError):
        raise DataError(f"every record must have {', '.join(fields)}, as the first one.") from None
    return kind.from_arrays(queries, documents, numbers)


def as_column(value: Any, kind: type[Column]) -> Any:
    """Return a run or judgments of any form as a Run or Qrels; labeled data need document ids."""
    if isinstance(value, Column):
        return value
    if isinstance(value, Mapping):
        return kind.from_dict(value)
    if is_frame(value):
        return kind.from_frame(value)
    if kind is Qrels and isinstance(value, Dataset):
        return to_qrels(value)
    raise DataError(
        f"a {'run' if kind is Run else 'file or mapping of judgments'} is required; got "
        f"{_named(value)}."
    )


def resolve_inputs(
    system: Any, truth: Any, qid: Any, docid: Any, measures: Iterable[Measure] = ()
) -> tuple[Any, Any, Any, Any]:
    """Return system, truth, query ids and document ids in a form that can be joined.

    Files are read, a ranker scores the data, and data frames become runs, judgments or arrays.
    """
    truth = read_truth(truth, measures)
    if is_path(system):
        system = _read_system(Path(system), truth)
    system = column_of_records(system, Run, "score")
    if hasattr(system, "predict") and not isinstance(truth, Shards):
        system = _scores_of(system, truth)
    if is_frame(system):
        system = Run.from_frame(system)
    if isinstance(system, (Column, Mapping)):
        if isinstance(truth, Dataset):
            if truth.docids is None:
                raise DataError(
                    f"{truth.source or 'the data'}: have no document ids, so a run cannot be "
                    "joined to them; pass one score per document."
                )
            truth = to_qrels(truth)
        if is_frame(truth):
            truth = Qrels.from_frame(truth)
        if truth is None or isinstance(truth, (int, float)):
            raise DataError(
                "a run requires judgments: qrels, a file name, a data frame or a dictionary; got "
                f"{_named(truth)}."
            )
        return system, truth, qid, docid
    if is_frame(truth):
        return _labels_of_frame(system, truth, qid, docid)
    if not isinstance(truth, (Column, Mapping, Dataset, Truth, Shards)):
        _refuse_object(truth, "labels", "a Dataset, qrels, a file name or a data frame")
    if not hasattr(system, "predict"):  # a ranker scores shards in place
        _refuse_object(system, "scores", "a run, a fitted ranker, a file name or a data frame")
    return system, truth, qid, docid


def _read_system(path: Path, truth: Any) -> Any:
    """Read a run; or scores, one per line, where the truth is labeled data."""
    labeled = isinstance(truth, (Dataset, Shards, Truth))
    if labeled and path.suffix.lower() == ".json":
        raise DataError(f"{path}: if it is a model, pass fp.load({str(path)!r}).")
    if labeled and str(path) != STANDARD_INPUT:
        with open_bytes(path) as (stream, _):
            first = next((line for line in stream if line.strip()), b"")
        if len(first.split()) < 2:
            scores = read_scores(path)
            to_row_order = getattr(truth, "to_row_order", None)
            return scores if to_row_order is None else to_row_order(scores)
    return read_run(path)


def _scores_of(ranker: Any, truth: Any) -> Any:
    """Return the scores of a fitted ranker for the documents of the truth."""
    if isinstance(ranker, type):
        name = ranker.__name__
        raise DataError(f"{name} is a class; pass a fitted ranker: {name}().fit(train).")
    if isinstance(truth, Dataset):
        return ranker.predict(truth)
    raise DataError(
        f"a ranker ({type(ranker).__name__}) needs data with features, such as "
        f"fp.read('test.txt'); got {_named(truth)}."
    )


def _labels_of_frame(system: Any, frame: Any, qid: Any, docid: Any) -> tuple[Any, Any, Any, Any]:
    """Return scores with the labels and ids of a data frame, whose rows are the documents."""
    labels = frame_numbers(frame, find_column(frame, GRADE_NAMES, "labels", "the truth"), "truth")
    if qid is None:
        name = find_column(frame, QUERY_NAMES, "query ids", "the truth")
        qid = np.asarray(frame[name])
    if docid is None and any(str(c).lower() in DOCUMENT_NAMES for c in frame.columns):
        name = find_column(frame, DOCUMENT_NAMES, "document ids", "the truth")
        docid = np.asarray(frame[name])
    return system, labels, qid, docid


def _refuse_object(value: Any, kind: str, others: str) -> None:
    """Refuse what cannot be an array: its conversion would raise a puzzling error."""
    if hasattr(value, "__array__") or (
        isinstance(value, Iterable) and not isinstance(value, (bytes, set, frozenset))
    ):
        return
    raise DataError(f"{kind} must be one number per document, or {others}; got {_named(value)}.")


def _named(value: Any) -> str:
    """Return a value for an error: its type, and itself where it is short."""
    text = repr(value)
    kind = type(value).__name__
    return kind if len(text) > 40 or "\n" in text or "object at" in text else f"{kind} {text}"


def expand_patterns(paths: Iterable[Any]) -> list[Path]:
    """Return files; a pattern such as `runs/*.run` stands for its files, sorted by name.

    A file whose name has such signs is not a pattern.  A pattern without files is an error.
    """
    files: list[Path] = []
    for path in paths:
        text = os.fspath(path)
        if not any(sign in text for sign in PATTERN_SIGNS) or os.path.exists(text):
            files.append(Path(text))
            continue
        matches = sorted(glob.glob(text, recursive=True))
        if not matches:
            raise DataError(f"{text}: no file matches this pattern.")
        files += map(Path, matches)
    return files


def named_systems(systems: Mapping[str, Any] | Iterable[Any]) -> dict[str, Any]:
    """Return systems by name; files of runs are read.

    Systems without a name of their own are named by `unique_names`.  A text is a file or a
    pattern of files.
    """
    if is_path(systems):
        systems = expand_patterns([systems])
    if not isinstance(systems, Mapping):
        files = [system if is_path(system) else None for system in systems]
        read_ones = [read_run(s) if is_path(s) else s for s in systems]
        tags = [str(getattr(system, "name", None) or "") for system in read_ones]
        return dict(zip(unique_names(tags, files), read_ones, strict=True))
    return {str(name): read_run(s) if is_path(s) else s for name, s in systems.items()}


def unique_names(tags: Sequence[str], files: Sequence[Any]) -> list[str]:
    """Return one name per system: its tag where no other has it, else that of its file.

    Systems without a file are numbered; so are files of the same path.
    """
    paths = [None if file is None else Path(file) for file in files]
    file_names = [path.name for path in paths if path is not None]
    names: list[str] = []
    for number, (tag, path) in enumerate(zip(tags, paths, strict=True), 1):
        if tag and tags.count(tag) == 1:
            name = tag
        elif path is not None:
            name = path.name if file_names.count(path.name) == 1 else str(path)
        else:
            name = f"{tag} ({number})" if tag in names else tag or f"system {number}"
        while name in names:
            name = f"{name} ({number})"
        names.append(name)
    return names
