"""Speed of reading and writing LETOR text, compared with scikit-learn; growth, reopening, memory.

    make bench          or          python benchmarks/parse.py [FILE ...]

Targets: 10 times the throughput of scikit-learn, writing in less than 0.3 microseconds per value,
reopening in less than 50 ms, and a peak of memory of at most twice the arrays.  Without FILE it
reads synthetic data and, if FIRSTPAGE_DATA names their folder, samples of MSLR and MQ2008.

Held equal: the file, and the values read, which are compared after casting to float32; the values
written.  The cache of Firstpage is off, except where reopening is timed.
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


def compare_with_scikit_learn(path: Path, name: str) -> list[str]:
    """Return a row with the throughput of both, after checking that they read the same values."""
    datasets = peer("sklearn.datasets")
    assert datasets is not None
    size = path.stat().st_size / 1e6
    ours = cpu_seconds(lambda: fp.read_letor(path, cache=False), 5)
    theirs = cpu_seconds(
        lambda: datasets.load_svmlight_file(str(path), query_id=True), 1, warmups=0
    )
    X, y, _ = datasets.load_svmlight_file(str(path), query_id=True)
    data = fp.read_letor(path, cache=False)
    assert np.array_equal(data.X, X.toarray().astype(np.float32), equal_nan=True)
    assert np.array_equal(data.y, y)
    return [
        name,
        f"{size:.1f} MB",
        f"{size / ours:.0f} MB/s",
        f"{size / theirs:.1f} MB/s",
        f"{theirs / ours:.1f}",
    ]


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
            [
                dtype,
                f"{1e9 * our_time / X.size:.0f} ns",
                f"{1e9 * their_time / X.size:.0f} ns",
                f"{their_time / our_time:.1f}",
                f"{ours.stat().st_size / 1e6:.1f} MB",
                f"{theirs.stat().st_size / 1e6:.1f} MB",
                "yes" if equal[1] else "no",
            ]
        )
    return rows


def peak_memory(path: Path) -> tuple[float, float]:
    """Return the peak of additional memory while reading, and the size of the arrays, in MB."""
    script = (
        "import sys, firstpage as fp\n"
        "def status(key):\n"
        "    lines = open('/proc/self/status')\n"
        "    return next(int(l.split()[1]) for l in lines if l.startswith(key))\n"
        "fp.read_letor(sys.argv[2], cache=False)\n"
        "open('/proc/self/clear_refs', 'w').write('5')\n"  # reset the recorded peak
        "base = status('VmRSS')\n"
        "d = fp.read_letor(sys.argv[1], cache=False)\n"
        "top = status('VmHWM')\n"
        "ids = d.docids.data.nbytes + 16 * d.n_docs if d.docids is not None else 0\n"
        "print(top - base, (d.X.nbytes + d.y.nbytes + d.offsets.nbytes + ids) / 1024)\n"
    )
    with tempfile.TemporaryDirectory() as folder:
        small = Path(folder) / "small.txt"
        fp.write_letor(fp.Synthetic(queries=200, docs=40, features=20).dataset(), small)
        completed = subprocess.run(
            [sys.executable, "-c", script, str(path), str(small)],
            capture_output=True,
            text=True,
            check=True,
        )
    peak, arrays = (float(v) / 1024 for v in completed.stdout.split())
    return peak, arrays


def main() -> None:
    print(versions("numpy", "scikit-learn"))
    files = [Path(argument) for argument in sys.argv[1:]]
    data = os.environ.get("FIRSTPAGE_DATA")
    if not files and data:
        files = [Path(data) / "mslr-web10k-5k" / "train.txt", Path(data) / "mq2008/Fold1/train.txt"]
    rows = [compare_with_scikit_learn(path, "/".join(path.parts[-2:])) for path in files]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        growth = []
        for factor in (1, 10, 100):
            path = folder / f"{factor}x.txt"
            generator = fp.Synthetic(queries=10 * factor, docs=60, features=46, seed=1)
            fp.write_letor(generator.blocks(100), path)
            if factor == 10:
                rows.append(compare_with_scikit_learn(path, "synthetic"))
            parse_time = cpu_seconds(lambda p=path: fp.read_letor(p, cache=False), 3)
            size = path.stat().st_size / 1e6
            cache = folder / "cache"
            fp.read_letor(path, cache=cache)
            reopen_time = cpu_seconds(lambda p=path, c=cache: fp.read_letor(p, cache=c), 5)
            growth.append(
                [
                    f"{factor}x",
                    f"{size:.1f} MB",
                    seconds(parse_time),
                    f"{size / parse_time:.0f} MB/s",
                    seconds(reopen_time),
                ]
            )
        peak, arrays = peak_memory(folder / "100x.txt")
        show(
            "Compared with scikit-learn's load_svmlight_file (same values after casting)",
            ["file", "size", "Firstpage", "scikit-learn", "ratio"],
            rows,
        )
        show(
            "Writing 10,000 x 46 normal values, against scikit-learn's dump_svmlight_file (CPU)",
            [
                "",
                "firstpage, per value",
                "scikit-learn",
                "ratio",
                "size",
                "scikit-learn's size",
                "scikit-learn's text reads back equal",
            ],
            writing_against_scikit_learn(folder),
        )
        show(
            "Growth with the size of the file, and reopening from the cache",
            ["", "size", "CPU to parse", "throughput", "CPU to reopen"],
            growth,
        )
        show(
            "Peak of additional memory while reading the largest file",
            ["arrays", "peak", "ratio"],
            [[f"{arrays:.1f} MB", f"{peak:.1f} MB", f"{peak / arrays:.2f}"]],
        )


if __name__ == "__main__":
    main()
