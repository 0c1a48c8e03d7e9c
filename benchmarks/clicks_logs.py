"""Read and describe a log of clicks in Parquet: processor time and memory by its size.

python benchmarks/clicks_logs.py --impressions 10_000_000
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import firstpage as fp

PAGE = 10
BLOCK_PAGES = 100_000


def write_log(path: Path, impressions: int) -> None:
    """Write a log of pages of ten results, whose queries have a head and a tail."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    writer = None
    for start in range(0, impressions // PAGE, BLOCK_PAGES):
        pages = min(BLOCK_PAGES, impressions // PAGE - start)
        query = np.minimum(rng.zipf(1.3, pages), 200_000)
        document = np.argsort(rng.random((pages, 20)), axis=1)[:, :PAGE] + 20 * query[:, None]
        clicked = rng.random((pages, PAGE)) < 0.4 / np.arange(1, PAGE + 1)
        page = np.repeat(np.arange(start, start + pages), PAGE)
        table = pa.table(
            {
                "page": pa.array([f"p{n}" for n in page]),
                "user": pa.array([f"u{n // 3}" for n in page]),
                "query": pa.array([f"query {n}" for n in np.repeat(query, PAGE)]),
                "document": pa.array([f"sku-{n}" for n in document.ravel()]),
                "rank": np.tile(np.arange(1, PAGE + 1, dtype=np.int32), pages),
                "clicked": clicked.ravel().astype(np.int8),
                "timestamp": np.repeat(1_700_000_000_000 + 50 * (page[::PAGE]), PAGE),
            }
        )
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    assert writer is not None
    writer.close()


def measure(path: Path) -> None:
    """Print the processor time of reading and describing, and the peak memory of this process."""
    start = time.process_time()
    sessions = fp.read_sessions(path)
    read = time.process_time() - start
    str(fp.clicks.describe(sessions))
    described = time.process_time() - start - read
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{sessions.n_impressions:>12,} {path.stat().st_size / 2**20:>9,.0f} MB "
        f"{read:>8.2f} s {described:>8.2f} s {peak:>9,.0f} MB",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--impressions", type=int, default=10_000_000, metavar="N")
    parser.add_argument("--write", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--log", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.write is not None:
        return write_log(options.write, options.impressions)
    if options.log is not None:
        return measure(options.log)
    print(
        f"{'impressions':>12} {'file':>12} {'read':>10} {'describe':>10} {'peak':>12}", flush=True
    )
    with tempfile.TemporaryDirectory() as folder:
        for size in (options.impressions // 100, options.impressions // 10, options.impressions):
            path = Path(folder) / f"{size}.parquet"
            command = [sys.executable, __file__, "--impressions", str(size)]
            subprocess.run([*command, "--write", str(path)], check=True)
            subprocess.run([*command, "--log", str(path)], check=True)  # its memory alone


if __name__ == "__main__":
    main()
