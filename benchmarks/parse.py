"""Reading and writing LETOR text against scikit-learn; memory; reopening; growth.

    make bench          or          python benchmarks/parse.py [FILE ...]

Bars: 10x scikit-learn's MB/s with the same values, writing under 0.3 microseconds per value,
reopening under 50 ms, peak memory at most twice the arrays.  Without FILE it reads
made-up data, and the MSLR and MQ2008 samples where FIRSTPAGE_DATA names their folder.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import firstpage as fp
from common import cpu_seconds, peer, seconds, show, versions


def against_scikit_learn(path: Path, name: str) -> list[str]:
    datasets = peer("sklearn.datasets")
    assert datasets is not None
    size = path.stat().st_size / 1e6
    mine = cpu_seconds(lambda: fp.read_letor(path, cache=False), 5)
    theirs = cpu_seconds(lambda: datasets.load_svmlight_file(str(path), query_id=True), 1, warm=0)
    X, y, _ = datasets.load_svmlight_file(str(path), query_id=True)
    data = fp.read_letor(path, cache=False)
    assert np.array_equal(data.X, X.toarray().astype(np.float32), equal_nan=True)
    assert np.array_equal(data.y, y)
    return [
        name, f"{size:.1f} MB", f"{size / mine:.0f} MB/s", f"{size / theirs:.1f} MB/s",
        f"{theirs / mine:.1f}",
    ]  # fmt: skip


def writing_against_scikit_learn(folder: Path) -> list[list[str]]:
    datasets = peer("sklearn.datasets")
    assert datasets is not None
    rows = []
    X = np.random.default_rng(0).normal(size=(10_000, 46))
    for dtype in ("float32", "float64"):
        data = fp.Dataset.from_arrays(X.astype(dtype), np.zeros(10_000), np.arange(10_000) // 100)
        ours, theirs = folder / "ours.txt", folder / "theirs.txt"
        our_time = cpu_seconds(lambda d=data, p=ours: fp.write_letor(d, p), 5)
        their_time = cpu_seconds(
            lambda d=data, p=theirs: datasets.dump_svmlight_file(
                d.X, d.y, str(p), query_id=d.qid, zero_based=False
            ),
            3,
        )
        equal = [
            np.array_equal(fp.read_letor(path, dtype=dtype, cache=False).X, data.X)
            for path in (ours, theirs)
        ]
        assert equal[0]
        rows.append(
            [dtype, f"{1e9 * our_time / X.size:.0f} ns", f"{1e9 * their_time / X.size:.0f} ns",
             f"{their_time / our_time:.1f}", f"{ours.stat().st_size / 1e6:.1f} MB",
             f"{theirs.stat().st_size / 1e6:.1f} MB", "yes" if equal[1] else "no"]
        )  # fmt: skip
    return rows


def peak(path: Path) -> tuple[float, float]:
    """(peak of reading above what the process needs without it, size of the arrays) in MB."""
    script = (
        "import sys, firstpage as fp\n"
        "def status(key):\n"
        "    lines = open('/proc/self/status')\n"
        "    return next(int(l.split()[1]) for l in lines if l.startswith(key))\n"
        "fp.read_letor(sys.argv[2], cache=False)\n"
        "open('/proc/self/clear_refs', 'w').write('5')\n"  # the peak starts again from here
        "base = status('VmRSS')\n"
        "d = fp.read_letor(sys.argv[1], cache=False)\n"
        "top = status('VmHWM')\n"
        "ids = d.docids.data.nbytes + 16 * d.n_docs if d.docids is not None else 0\n"
        "print(top - base, (d.X.nbytes + d.y.nbytes + d.offsets.nbytes + ids) / 1024)\n"
    )
    with tempfile.TemporaryDirectory() as folder:
        small = Path(folder) / "small.txt"
        fp.write_letor(fp.Synthetic(queries=200, docs=40, features=20).dataset(), small)
        done = subprocess.run(
            [sys.executable, "-c", script, str(path), str(small)],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
    used, arrays = (float(v) / 1024 for v in done.stdout.split())
    return used, arrays


def main() -> None:
    print(versions("numpy", "scikit-learn"))
    given = [Path(a) for a in sys.argv[1:]]
    data = os.environ.get("FIRSTPAGE_DATA")
    if not given and data:
        given = [Path(data) / "mslr-web10k-5k" / "train.txt", Path(data) / "mq2008/Fold1/train.txt"]
    rows = [against_scikit_learn(path, "/".join(path.parts[-2:])) for path in given]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        growth = []
        for times in (1, 10, 100):
            path = folder / f"{times}x.txt"
            recipe = fp.Synthetic(queries=10 * times, docs=60, features=46, seed=1)
            fp.write_letor(recipe.blocks(100), path)
            if times == 10:
                rows.append(against_scikit_learn(path, "synthetic"))
            took = cpu_seconds(lambda p=path: fp.read_letor(p, cache=False), 3)
            size = path.stat().st_size / 1e6
            cache = folder / "cache"
            fp.read_letor(path, cache=cache)
            again = cpu_seconds(lambda p=path, c=cache: fp.read_letor(p, cache=c), 5)
            growth.append(
                [
                    f"{times}x",
                    f"{size:.1f} MB",
                    seconds(took),
                    f"{size / took:.0f} MB/s",
                    seconds(again),
                ]
            )
        used, arrays = peak(folder / "100x.txt")
        show("Against scikit-learn's load_svmlight_file (same values after casting)",
             ["file", "size", "firstpage", "scikit-learn", "ratio"], rows)  # fmt: skip
        show("Writing 10,000 x 46 normal values, against scikit-learn's dump_svmlight_file (CPU)",
             ["", "firstpage, per value", "scikit-learn", "ratio", "size", "scikit-learn's size",
              "scikit-learn's text reads back equal"],
             writing_against_scikit_learn(folder))  # fmt: skip
        show("Growth, and reopening from the cache",
             ["", "size", "read (CPU)", "", "reopen (CPU)"], growth)  # fmt: skip
        show("Memory of reading the largest",
             ["arrays", "peak above start", "ratio"],
             [[f"{arrays:.1f} MB", f"{used:.1f} MB", f"{used / arrays:.2f}"]])  # fmt: skip


if __name__ == "__main__":
    main()
