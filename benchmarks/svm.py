"""Speed of the rankers with hinge losses: RankSVM compared with others, and growth of all.

    python benchmarks/svm.py [--quick]

RankSVM is compared with two other solvers:
- dlib's linear RankSVM (C++; compiled here if its headers and a compiler are installed), which
  supports binary relevance only, so that labels are made binary;
- scikit-learn's LinearSVC on the differences of all pairs, on MQ2008.
SVMrank and liblinear's RankSVM are in no package registry and are not compared.

Held equal: training data, labels, C and the objective; each row reports the ratio of the objectives
reached.  The pair differences for LinearSVC are computed before the timing.  Times are CPU times.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import firstpage as fp
from common import cpu_seconds, seconds, show, versions
from train import real_data

QUICK = "--quick" in sys.argv
LIBRARIES = ["-ldlib", "-l:libblas.so.3", "-lpthread"]


def synthetic(queries: int, docs: Any = 100) -> fp.Dataset:
    """Return synthetic data with 46 float32 features and three grades."""
    generator = fp.Synthetic(queries=queries, docs=docs, features=46, grades=3, noise=1.0, seed=0)
    data = generator.dataset()
    return data.with_features(np.ascontiguousarray(data.X, np.float32))


def training_data() -> dict[str, fp.Dataset]:
    """Return training data by name."""
    datasets = {}
    if (folder := real_data()) is not None:
        datasets["MQ2008 Fold1"] = fp.read_folds(folder / "mq2008")[0].train
    datasets["600 x 100 x 46"] = synthetic(800)[:600]
    return datasets


def objective(data: fp.Dataset, w: np.ndarray, C: float) -> float:
    """Return |w|^2 / 2 + C * (mean hinge loss over the queries that have pairs)."""
    hinge = fp.extend.loss("PairwiseHinge")
    losses, _ = hinge.value_grad(np.asarray(data.X, float) @ w, data.truth)
    return float(w @ w / 2 + C * losses.sum() / informative_queries(data))


def informative_queries(data: fp.Dataset) -> int:
    """Return the number of queries with two different labels; training ignores the others."""
    largest, smallest = (f.reduceat(data.y, data.offsets[:-1]) for f in (np.maximum, np.minimum))
    return int((largest > smallest).sum())


def compile_dlib_trainer(folder: Path) -> Path | None:
    """Return the compiled program that trains with dlib, or None if it cannot be compiled."""
    source, program = Path(__file__).with_name("svm_peer.cpp"), folder / "svm_peer"
    if shutil.which("g++") is None:
        return None
    command = ["g++", "-O3", "-march=native", "-std=c++14", str(source), "-o", str(program)]
    completed = subprocess.run([*command, *LIBRARIES], capture_output=True, check=False)
    return program if completed.returncode == 0 else None


def write_for_dlib(data: fp.Dataset, path: Path) -> None:
    """Write the queries with relevant and other documents in the format of the dlib program."""
    X = np.asarray(data.X, np.float64)
    queries = [
        (lo, hi)
        for lo, hi in zip(data.offsets[:-1], data.offsets[1:], strict=True)
        if 0 < (data.y[lo:hi] > 0).sum() < hi - lo
    ]
    with path.open("wb") as out:
        out.write(np.array([len(queries), X.shape[1]], np.int64).tobytes())
        for lo, hi in queries:
            relevant = data.y[lo:hi] > 0
            out.write(np.array([relevant.sum(), (~relevant).sum()], np.int64).tobytes())
            out.write(X[lo:hi][relevant].tobytes() + X[lo:hi][~relevant].tobytes())


def compare_with_dlib(name: str, train: fp.Dataset, program: Path, folder: Path) -> list[list[str]]:
    """Return a row per C with times and objectives of dlib and RankSVM."""
    binary = train.with_labels(train.truth.binary())
    pairs = len(binary.truth.pairs()[0])
    write_for_dlib(binary, folder / "data")
    rows = []
    for C in (1.0, 100.0, 10000.0):  # of the mean over all pairs
        completed = subprocess.run(
            [str(program), str(folder / "data"), str(C), "0.001"],
            capture_output=True,
            text=True,
            check=True,
        )
        dlib_cpu, *dlib_weights = (float(x) for x in completed.stdout.split())
        our_C = C * informative_queries(binary) / pairs
        ranker = fp.RankSVM(C=our_C)
        cpu = cpu_seconds(lambda r=ranker: r.fit(binary))
        theirs, ours = (objective(binary, w, our_C) for w in (np.array(dlib_weights), ranker.coef_))
        rows.append(
            [
                name,
                f"{C:g}",
                seconds(dlib_cpu),
                seconds(cpu),
                f"{dlib_cpu / cpu:.1f}",
                f"{theirs / ours:.4f}",
                f"{ranker.gap_:.1e}",
            ]
        )
    return rows


def compare_with_linear_svc(train: fp.Dataset) -> list[list[str]]:
    """Return a row per C with times and objectives of LinearSVC and RankSVM."""
    from sklearn.svm import LinearSVC

    better, worse = train.truth.pairs()
    X = np.asarray(train.X, np.float64)
    differences = X[better] - X[worse]
    sign = np.where(np.arange(len(better)) % 2 == 0, 1, -1)
    rows = []
    for C in (0.1, 1.0, 10.0):
        svc = LinearSVC(
            C=C / informative_queries(train),
            loss="hinge",
            fit_intercept=False,
            tol=1e-3,
            max_iter=20_000,
        )
        theirs = cpu_seconds(lambda s=svc: s.fit(differences * sign[:, None], sign), 3)
        ranker = fp.RankSVM(C=C)
        ours = cpu_seconds(lambda r=ranker: r.fit(train))
        ratio = objective(train, svc.coef_[0], C) / objective(train, ranker.coef_, C)
        rows.append(
            [
                f"{C:g}",
                seconds(theirs),
                seconds(ours),
                f"{theirs / ours:.1f}",
                f"{ratio:.4f}",
                f"{ranker.gap_:.1e}",
            ]
        )
    return rows


def growth() -> list[list[str]]:
    """Return a row per ranker and size with the CPU time of a fit."""
    rows = []
    for factor in (1, 10) if QUICK else (1, 10, 100):
        data = synthetic(470 * factor, "uniform(5, 36)")
        for cls in (fp.RankSVM, fp.SVMMAP, fp.FocusedSVM, fp.TopMargin, fp.TopSlack):
            ranker = cls(C=1.0)
            cpu = cpu_seconds(lambda r=ranker, d=data: r.fit(d), 1, 1 if factor == 1 else 0)
            per_document = 1e9 * cpu / data.n_docs
            rows.append(
                [
                    cls.__name__,
                    f"{factor}x",
                    str(data.n_docs),
                    str(ranker.n_iter_),
                    seconds(cpu),
                    f"{per_document:.0f} ns",
                    f"{ranker.gap_:.1e}",
                ]
            )
    return sorted(rows, key=lambda row: row[0])


def main() -> None:
    warnings.simplefilter("ignore")
    print(versions("firstpage", "numpy", "scikit-learn", "piqp"))
    datasets = training_data()
    with tempfile.TemporaryDirectory() as folder_name:
        folder = Path(folder_name)
        program = compile_dlib_trainer(folder)
        if program is None:
            print("dlib (libdlib-dev) or g++ is not installed, and not compared.")
        else:
            rows = [
                row
                for name, train in datasets.items()
                for row in compare_with_dlib(name, train, program, folder)
            ]
            head = [
                "data",
                "C",
                "CPU of dlib",
                "CPU of Firstpage",
                "ratio",
                "objective of dlib / of Firstpage",
                "gap",
            ]
            show("RankSVM and dlib, binary labels", head, rows)
    if "MQ2008 Fold1" in datasets:
        head = [
            "C",
            "CPU of LinearSVC",
            "CPU of Firstpage",
            "ratio",
            "objective of LinearSVC / of Firstpage",
            "gap",
        ]
        show(
            "RankSVM and LinearSVC on pair differences, MQ2008 Fold1",
            head,
            compare_with_linear_svc(datasets["MQ2008 Fold1"]),
        )
    head = ["ranker", "size", "documents", "iterations", "CPU", "CPU per document", "gap"]
    show("Growth on data like MQ2008, C = 1", head, growth())


if __name__ == "__main__":
    main()
