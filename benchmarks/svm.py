"""How fast the rankers with hinges train: RankSVM against others, and all as data grow.

    python benchmarks/svm.py [--quick]

RankSVM is compared at the same objective, in CPU time:
- with dlib's linear RankSVM (C++; built here if its headers and a compiler are there), which knows
  relevant and not relevant alone, on labels cut so;
- with scikit-learn's LinearSVC on the differences of all pairs, on MQ2008.
SVMrank and liblinear's RankSVM come from no package registry, and are not compared.
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
    recipe = fp.Synthetic(queries=queries, docs=docs, features=46, grades=3, noise=1.0, seed=0)
    data = recipe.dataset()
    return data.with_features(np.ascontiguousarray(data.X, np.float32))


def collections() -> dict[str, tuple[fp.Dataset, fp.Dataset]]:
    found = {}
    if (folder := real_data()) is not None:
        fold = fp.read_folds(folder / "mq2008")[0]
        found["MQ2008 Fold1"] = (fold.train, fold.valid)
    data = synthetic(800)
    found["600 x 100 x 46"] = (data[:600], data[600:])
    return found


def objective(data: fp.Dataset, w: np.ndarray, C: float) -> float:
    """|w|^2 / 2 + C * mean over the queries with pairs of their hinges."""
    losses, _ = fp.loss("PairwiseHinge").value_grad(np.asarray(data.X, float) @ w, data.truth)
    return float(w @ w / 2 + C * losses.sum() / telling(data))


def telling(data: fp.Dataset) -> int:
    """Queries with a preference; the others are left out of training."""
    tops, lows = (f.reduceat(data.y, data.offsets[:-1]) for f in (np.maximum, np.minimum))
    return int((tops > lows).sum())


def dlib_trainer(folder: Path) -> Path | None:
    """The peer, compiled; None where it cannot be."""
    source, built = Path(__file__).with_name("svm_peer.cpp"), folder / "svm_peer"
    if shutil.which("g++") is None:
        return None
    command = ["g++", "-O3", "-march=native", "-std=c++14", str(source), "-o", str(built)]
    tried = subprocess.run([*command, *LIBRARIES], capture_output=True, check=False)
    return built if tried.returncode == 0 else None


def for_dlib(data: fp.Dataset, path: Path) -> None:
    X = np.asarray(data.X, np.float64)
    kept = [(lo, hi) for lo, hi in zip(data.offsets[:-1], data.offsets[1:], strict=True)
            if 0 < (data.y[lo:hi] > 0).sum() < hi - lo]  # fmt: skip
    with path.open("wb") as out:
        out.write(np.array([len(kept), X.shape[1]], np.int64).tobytes())
        for lo, hi in kept:
            yes = data.y[lo:hi] > 0
            out.write(np.array([yes.sum(), (~yes).sum()], np.int64).tobytes())
            out.write(X[lo:hi][yes].tobytes() + X[lo:hi][~yes].tobytes())


def against_dlib(name: str, train: fp.Dataset, built: Path, folder: Path) -> list[list[str]]:
    binary = train.with_labels(train.truth.binary())
    pairs = len(binary.truth.pairs()[0])
    for_dlib(binary, folder / "data")
    rows = []
    for C in (1.0, 100.0, 10000.0):  # of the mean over all pairs
        said = subprocess.run([str(built), str(folder / "data"), str(C), "0.001"],
                              capture_output=True, text=True, check=True)  # fmt: skip
        numbers = [float(x) for x in said.stdout.split()]
        mine = C * telling(binary) / pairs
        ranker = fp.RankSVM(C=mine)
        cpu = cpu_seconds(lambda r=ranker: r.fit(binary))
        theirs, ours = (objective(binary, w, mine) for w in (np.array(numbers[1:]), ranker.coef_))
        rows.append([name, f"{C:g}", seconds(numbers[0]), seconds(cpu), f"{numbers[0] / cpu:.1f}x",
                     f"{theirs / ours:.4f}", f"{ranker.gap_:.1e}"])  # fmt: skip
    return rows


def against_liblinear(train: fp.Dataset) -> list[list[str]]:
    from sklearn.svm import LinearSVC

    better, worse = train.truth.pairs()
    X = np.asarray(train.X, np.float64)
    apart = X[better] - X[worse]
    sign = np.where(np.arange(len(better)) % 2 == 0, 1, -1)
    rows = []
    for C in (0.1, 1.0, 10.0):
        svc = LinearSVC(C=C / telling(train), loss="hinge", fit_intercept=False, tol=1e-3,
                        max_iter=20_000)  # fmt: skip
        theirs = cpu_seconds(lambda s=svc: s.fit(apart * sign[:, None], sign), 3)
        ranker = fp.RankSVM(C=C)
        ours = cpu_seconds(lambda r=ranker: r.fit(train))
        ratio = objective(train, svc.coef_[0], C) / objective(train, ranker.coef_, C)
        rows.append([f"{C:g}", seconds(theirs), seconds(ours), f"{theirs / ours:.1f}x",
                     f"{ratio:.4f}", f"{ranker.gap_:.1e}"])  # fmt: skip
    return rows


def growth() -> list[list[str]]:
    rows = []
    for times in (1, 10) if QUICK else (1, 10, 100):
        data = synthetic(470 * times, "uniform(5, 36)")
        for cls in (fp.RankSVM, fp.SVMMAP, fp.FocusedSVM, fp.TopMargin, fp.TopSlack):
            ranker = cls(C=1.0)
            cpu = cpu_seconds(lambda r=ranker, d=data: r.fit(d), 1, 1 if times == 1 else 0)
            each = 1e9 * cpu / data.n_docs
            rows.append([cls.__name__, f"{times}x", str(data.n_docs), str(ranker.n_iter_),
                         seconds(cpu), f"{each:.0f} ns", f"{ranker.gap_:.1e}"])  # fmt: skip
    return sorted(rows, key=lambda row: row[0])


def main() -> None:
    warnings.simplefilter("ignore")
    print(versions("firstpage", "numpy", "scikit-learn", "piqp"))
    found = collections()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        built = dlib_trainer(folder)
        if built is None:
            print("dlib (libdlib-dev) or g++ is not here: not compared.")
        else:
            rows = [r for n, (train, _) in found.items()
                    for r in against_dlib(n, train, built, folder)]  # fmt: skip
            head = ["data", "C", "dlib", "ours", "ratio", "its objective / ours", "gap"]
            show("RankSVM against dlib, relevant or not, training alone", head, rows)
    if "MQ2008 Fold1" in found:
        head = ["C", "LinearSVC", "ours", "ratio", "its objective / ours", "gap"]
        show("RankSVM against LinearSVC on pair differences, MQ2008 Fold1", head,
             against_liblinear(found["MQ2008 Fold1"][0]))  # fmt: skip
    head = ["ranker", "size", "documents", "iterations", "CPU", "a document", "gap"]
    show("Growth on MQ2008-like data, C = 1", head, growth())


if __name__ == "__main__":
    main()
