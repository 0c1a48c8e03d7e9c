"""Commands that get a file of another kind than theirs, by hand: `make soak`, or with a number.

Every file of every command in `tests/walks/test_formats.py` is replaced by each other file that
commands write, by files of other tools, and by broken ones.  A command must end by itself, with a
result or an error of one line, never with another exception.
"""

from __future__ import annotations

import gzip
import os
import random
import shutil
import signal
import sys
import tempfile
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest

from tests.walks import test_formats

OTHERS = {
    "empty.txt": b"", "blank.txt": b"\n\n \n", "binary": b"\0\1\2\xff" * 50,
    "latin.txt": b"caf\xe9 \xfc\n" * 5, "bom.jsonl": b'\xef\xbb\xbf{"id": 1}\n',
    "half.json": b'{"a": [1, 2', "list.json": b"[1, 2, 3]", "null.json": b"null\n",
    "text.jsonl": b'"x"\n"y"\n', "deep.json": b"[" * 2000 + b"]" * 2000,
    "nested.jsonl": b'{"id": {"a": 1}, "text": ["x"], "query": null, "items": 3}\n',
    "overflow.json": b'{"version": 1e400, "format": "firstpage"}',
    "run.gz": gzip.compress(b"1 Q0 a 1 2 t\n"), "cut.gz": gzip.compress(b"1 Q0 a 1 2 t\n" * 99)[:40],
    "npl": b"1\nred shoe\n/\n2\nblue\n/\n", "smart.qry": b".I 1\n.W\nred shoe\n",
    "smart.rel": b"1 2 0 0\n1 3 0 0\n", "topics": b"<top>\n<num> 1\n<title> red\n</top>\n",
    "trec.docs": b"<DOC>\n<DOCNO> a </DOCNO>\n<TEXT>red</TEXT>\n</DOC>\n",
    "marco.run": b"a x 1\na y 2\n", "subtopics.qrels": b"q1 1 a 1\nq1 2 b 0\n",
    "other.csv": b"a,b\n1,2\n", "repeated.csv": b"a,a\n1,2\n", "header.csv": b"id,text\n",
    "nan.letor": b"1 qid:1 1:nan\n0 qid:1 1:inf\n", "one.letor": b"1 qid:1 1:1\n",
    "broken.parquet": b"PAR1xxxxPAR1", "unknown.run": b"sku-001 Q0 x 1 2 t\n",
}  # fmt: skip
OUTPUTS = ("-o", "--save-baseline", "--save-model", "--checkpoint")
MAX_SECONDS = 60  # of one command


def cases(folder: Path) -> Iterator[list[str]]:
    """Yield the words of all commands with one wrong file each."""
    files = sorted(path.name for path in folder.iterdir() if path.name != "__pycache__")
    blocks = [test_formats.WRITE, *test_formats.READ.values()]
    for line in (line for block in blocks for line in block.strip().splitlines()):
        words = line.split()
        for i in range(1, len(words)):
            if words[i] in files and words[i - 1] not in OUTPUTS:
                yield from ([*words[:i], name, *words[i + 1 :]] for name in files)


def main(count: int = 1000, seed: int | None = None) -> int:
    """Run so many random cases; return how many ended with another exception."""
    seed = random.SystemRandom().randrange(1 << 32) if seed is None else seed
    print(f"seed {seed}")
    faults = 0
    with tempfile.TemporaryDirectory() as parent, pytest.MonkeyPatch.context() as patch:
        complete, copy = Path(parent, "complete"), Path(parent, "copy")
        complete.mkdir()
        patch.syspath_prepend(str(complete))
        patch.chdir(complete)
        test_formats.write_all(complete)
        for name, content in OTHERS.items():
            (complete / name).write_bytes(content)
        (complete / "empty").mkdir()
        every = list(cases(complete))
        chosen = random.Random(seed).sample(every, min(count, len(every)))
        for words in chosen:
            shutil.copytree(complete, copy, dirs_exist_ok=True)
            os.chdir(copy)
            faults += not ends_by_itself(words)
            os.chdir(complete)
            shutil.rmtree(copy, ignore_errors=True)  # an index may still be merged
    print(f"{len(chosen):,} of {len(every):,} cases, {faults} faults")
    return faults


def ends_by_itself(words: list[str]) -> bool:
    """Run a command; print an exception that no user should see."""

    def too_long(*_: object) -> NoReturn:
        raise RuntimeError(f"took more than {MAX_SECONDS} s")

    signal.signal(signal.SIGALRM, too_long)
    signal.alarm(MAX_SECONDS)
    try:
        test_formats.call(" ".join(words))
    except Exception:
        print(f"firstpage {' '.join(words)}\n{traceback.format_exc()}")
        return False
    finally:
        signal.alarm(0)
    return True


if __name__ == "__main__":
    sys.exit(bool(main(*map(int, sys.argv[1:]))))
