"""Record what Firstpage computes on small data, and compare two records bit by bit.

For changes that must not change a number: record before, change the code, record after.

    python -m tests.recorded write before.npz
    python -m tests.recorded compare before.npz after.npz

A record holds arrays and digests of files: fits of every ranker (scores, weights, objective), every
measure under every convention, DCGLearn, aggregation, the questions of every strategy, exports, and
answers of a served model.  Bits are those of one machine; records of two machines differ.
"""

from __future__ import annotations

import hashlib
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import firstpage as fp
from firstpage.labeling.strategies.registry import STRATEGIES, strategy
from firstpage.labeling.strategies.strategy import TopKTask
from tests.evaluation.aggregation.cases import ballots_of, random_query
from tests.evaluation.aggregation.test_methods import CASES as AGGREGATIONS
from tests.evaluation.dcglearn.reference import random_preferences
from tests.evaluation.measures.test_family import CASES as MEASURE_CASES
from tests.interop.export.conftest import RANKERS as EXPORTED
from tests.interop.export.conftest import ranker as exported
from tests.labeling.reference import by_merit, play
from tests.learning.rankers.test_family import TEST, TRAIN, UNFITTED
from tests.narrow import dense
from tests.serving.conftest import RANKERS as SERVED
from tests.serving.conftest import body, clients, dataset, write_model

Entry = tuple[str, Any]
FITTED = ("coef_", "objective_", "gap_", "n_iter_")


def fits() -> Iterator[Entry]:
    for ranker in UNFITTED:
        fitted = ranker.fit(TRAIN, valid=TEST)
        yield f"fit/{ranker}/scores", fitted.predict(TEST)
        for name in FITTED:
            if (value := getattr(fitted, name, None)) is not None:
                yield f"fit/{ranker}/{name}", value


# Weights for the short lists of the tests do not reach the end of the longer ones recorded here.
MEASURES = [text for text in MEASURE_CASES if not text.startswith("WKT(weights") or "@" in text]


def measures() -> Iterator[Entry]:
    rng = np.random.default_rng(3)
    data = fp.Synthetic(queries=40, docs="uniform(1, 25)", features=3, grades=4, seed=3).dataset()
    scores = np.round(rng.normal(size=data.n_docs), 1)  # some of them tied
    for convention in ("default", "trec", "letor"):
        for text in MEASURES:
            values = fp.evaluate(scores, data, measures=text, convention=convention).values
            yield f"measure/{convention}/{text}", values


def dcglearn() -> Iterator[Entry]:
    for seed in range(4):
        pairs = random_preferences(150, seed=seed, ties=0.2, strong=0.3)
        learner = fp.dcglearn.DCGLearn(K=5, grid=(0.1, 1.0, 10.0), folds=3).fit(pairs)
        yield f"dcglearn/{seed}/weights", learner.weights_
        yield f"dcglearn/{seed}/scores", learner.decision_function(pairs)
        bands = fp.dcglearn.intervals(learner, rounds=10)
        for name in ("gains", "discounts", "weights"):
            yield f"dcglearn/{seed}/intervals of {name}", getattr(bands, name)


def aggregations() -> Iterator[Entry]:
    rng = np.random.default_rng(5)
    queries = [random_query(rng, 4, int(rng.integers(1, 9)), True) for _ in range(30)]
    for text in AGGREGATIONS:
        merged = fp.aggregation.aggregate(ballots_of(queries), method=text)
        yield f"aggregate/{text}", np.asarray(merged.scores)


def questions() -> Iterator[Entry]:
    merit = [float(m) for m in np.random.default_rng(7).integers(0, 9, 14)]
    for name in STRATEGIES:
        for seed in range(3):
            top, asked = play(strategy(name), TopKTask(14, 5, seed), by_merit(merit))
            documents = [number for question in asked for number in question.documents]
            yield f"questions/{name}/{seed}", np.array([*documents, -1, *top.order, *top.rest])


def exports() -> Iterator[Entry]:
    from firstpage.interop.export.targets import TARGETS

    for kind in EXPORTED:
        for target in TARGETS:
            try:
                files = fp.export(exported(kind, None), target).files
            except fp.FirstpageError as error:
                yield f"export/{target}/{kind}", _digest(str(error).encode())
                continue
            for name, content in sorted(files.items()):
                yield f"export/{target}/{kind}/{name}", _digest(content)


def answers() -> Iterator[Entry]:
    with tempfile.TemporaryDirectory() as folder:
        for kind in SERVED:
            path = write_model(Path(folder) / f"{kind}.json", kind)
            yield f"model/{kind}", _digest(path.read_bytes())
            for client in clients(path):
                reply = client.post("/rank", json=body(dense(dataset().X[:12]), explain=True))
                yield f"serve/{kind}", _digest(reply.content)


PARTS = (fits, measures, dcglearn, aggregations, questions, exports, answers)


def _digest(content: bytes | str) -> np.ndarray:
    data = content.encode() if isinstance(content, str) else content
    return np.frombuffer(hashlib.sha256(data).digest(), np.uint8)


def write(path: Path) -> None:
    record: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for part in PARTS:
            entries = {key.replace("/", "|"): np.asarray(value) for key, value in part()}
            print(f"{part.__name__}: {len(entries)} entries", flush=True)
            record |= entries
    np.savez_compressed(path, **record)


def compare(before: Path, after: Path) -> int:
    """Print what differs; return how many entries do."""
    old, new = np.load(before), np.load(after)
    differing = 0
    for key in sorted({*old.files, *new.files}):
        if key not in old.files or key not in new.files:
            print(f"{key}: only in {before if key in old.files else after}")
        elif not np.array_equal(old[key], new[key], equal_nan=old[key].dtype.kind == "f"):
            print(f"{key}: differs{_by_how_much(old[key], new[key])}")
        else:
            continue
        differing += 1
    print(f"{differing} of {len({*old.files, *new.files})} entries differ")
    return differing


def _by_how_much(old: np.ndarray, new: np.ndarray) -> str:
    if old.shape != new.shape or old.dtype.kind != "f":
        return ""
    return f" by up to {np.nanmax(np.abs(old - new)):.2g}"


if __name__ == "__main__":
    if sys.argv[1:2] == ["write"] and len(sys.argv) == 3:
        write(Path(sys.argv[2]))
    elif sys.argv[1:2] == ["compare"] and len(sys.argv) == 4:
        sys.exit(compare(Path(sys.argv[2]), Path(sys.argv[3])) > 0)
    else:
        sys.exit(__doc__)
