"""Byte-level fuzzing of the readers, by hand: `make soak`, or with a number of cases.

Every case is a text that is mutated and read.  It must give a dataset or a `DataError`, never
another exception, a crash or a hang.  Where it gives a dataset, a slow reference that splits
lines in plain Python must have found the same numbers.
"""

from __future__ import annotations

import math
import random
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

import firstpage as fp
from firstpage.core.kernels.parsing.numbers import fallback_number

SEEDS = [
    b"2 qid:10 1:0.03 2:0.2 3:-1e3 # docid = GX001-1\n0 qid:10 1:0.5 3:2e8 #docid = GX001-2\n",
    b"1 qid:a 1:1 2:2 3:3\r\n\r\n0 qid:b 0:7 5:.5\n# comment\n0 qid:a 1:NULL 2:nan\n",
    b"0.5 qid:7 12:123456789012345678901234567890 13:1e-320 14:-0 15:+5.\t# x y\n",
]
TREC = [b"1 0 a 2\n1 0 b 0\n2 0 a 1\n", b"1 Q0 b 1 0.9 tag\n1 Q0 a 2 -5e-1 tag\n2\tQ0 a 1 1e3 t\n"]
PIECES = [
    b" ", b"\n", b"\r", b"\t", b"#", b":", b"qid:", b"qid", b"nan", b"NULL", b"inf", b"-", b"+", b".",
    b"e", b"E9", b"0", b"1", b"9" * 25, b"1e999", b"\x00", b"\xff\xfe", b"docid = ", b"docid", b"1:1",
    b"2147483648:1", b"0:0", b"\x0b", b"\x0c", b"_", "é".encode(),
]  # fmt: skip


def mutate(rng: random.Random, text: bytes) -> bytes:
    data = bytearray(text)
    for _ in range(rng.randint(0, 6)):
        at = rng.randint(0, len(data))
        kind = rng.randint(0, 4)
        if kind == 0:
            data[at:at] = rng.choice(PIECES)
        elif kind == 1 and data:
            del data[at : at + rng.randint(1, 8)]
        elif kind == 2 and data:
            data[min(at, len(data) - 1)] = rng.randint(0, 255)
        elif kind == 3:
            other = rng.randint(0, len(data))
            data[at:at] = data[other : other + rng.randint(1, 40)]
        else:
            data = data[:at]
    return bytes(data)


def number(word: bytes) -> float | None:
    """Return the value of an ASCII decimal, nan, inf or null; None if it is none of these."""
    try:
        text = word.decode("ascii")
    except UnicodeDecodeError:
        return None
    return fallback_number(text.encode()) if text and not text[-1].isspace() else None


def reference(text: bytes) -> tuple[list, list, list] | None:
    """Return (labels, query ids, {feature: value} per row), or None if a line is invalid."""
    blank = b" \t\r\x0b\x0c"
    labels, queries, rows = [], [], []
    for line in text.split(b"\n"):
        body = line.split(b"#", 1)[0].strip(blank)
        for c in blank:
            body = body.replace(bytes([c]), b" ")
        words = [w for w in body.split(b" ") if w]
        if not words:
            continue
        label = number(words[0])
        if label is None or not math.isfinite(label):
            return None
        if len(words) < 2 or not words[1].startswith(b"qid:") or len(words[1]) == 4:
            return None
        row: dict[int, float] = {}
        for word in words[2:]:
            index, colon, value = word.partition(b":")
            parsed = number(value)
            if not colon or not index.isdigit() or parsed is None or int(index) > 2**31 - 1:
                return None
            if int(index) in row:
                return None
            row[int(index)] = parsed
        labels.append(label)
        queries.append(words[1][4:])
        rows.append(row)
    return (labels, queries, rows) if rows else None


def check_letor(path: Path, text: bytes) -> None:
    expected = reference(text)
    try:
        data = fp.read_letor(path, dtype="float64", cache=False)
    except fp.DataError as error:
        assert expected is None, (text, error)
        assert str(error).startswith(str(path)), error
        return
    assert expected is not None, text
    labels, queries, rows = expected
    order = sorted(range(len(rows)), key=lambda i: queries.index(queries[i]))
    assert data.y.tolist() == [labels[i] for i in order], text
    X = data.dense().X
    first = 0 if any(0 in row for row in rows) else 1
    for parsed_row, i in zip(X, order, strict=True):
        full = np.zeros(X.shape[1])
        for index, value in rows[i].items():
            full[index - first] = value
        assert np.array_equal(parsed_row, full, equal_nan=True), text


def check_trec(path: Path, text: bytes) -> None:
    for read in (fp.read_qrels, fp.read_run, fp.read_scores):
        try:
            read(path)
        except fp.DataError as error:
            assert "\n" not in str(error)


def main(cases: int) -> None:
    rng = random.Random(20)
    warnings.simplefilter("ignore", fp.FirstpageWarning)
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "case.txt"
        for case in range(cases):
            text = mutate(rng, rng.choice(SEEDS))
            path.write_bytes(text)
            check_letor(path, text)
            text = mutate(rng, rng.choice(TREC))
            path.write_bytes(text)
            check_trec(path, text)
            if case % 10_000 == 9_999:
                print(f"{case + 1:,} cases, {time.monotonic() - start:.0f} s", flush=True)
    print(f"{cases:,} cases of each reader: no crash, no hang, no wrong value")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 150_000)
