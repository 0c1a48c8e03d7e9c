"""Keep files of a release, which later versions must read: python -m tests.release.kept 0.1.0 [firstpage]

The command `firstpage` of that release (by default this one) writes a store with judgments, its
backups, an index, data and models, and prints what it makes of them.  All of it goes to
`tests/release/files/VERSION.zip`; `test_upgrade.py` runs the commands `READ` on it again.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

FILES = Path(__file__).with_name("files")
EXPECTED = "expected.json"

NAMES = ["running shoe", "rain coat", "leather boot", "wool sock", "trail shoe", "summer dress"]
COLORS = ["red", "blue", "green", "black"]
QUERIES = ["red shoe", "blue coat", "black boots", "green wool socks", "dress"]
JUDGE = """
def better(query, left, right):
    prices = [float(d.body.rpartition(" ")[2]) for d in (left, right)]
    return "left" if prices[0] > prices[1] else "right"
"""
WRITE = (
    "index products.jsonl -o shop.index",
    "candidates shop.index queries.jsonl --depth 6 -o first.run",
    "features shop.index queries.jsonl first.run --qrels shop.qrels -o data.npz",
    "train ListNet data.npz --normalize standard -o model.json",
    "train LambdaMART(seed=0) train.txt -o trees.json",
    "label setup labels --queries queries.jsonl --run first.run --index shop.index --k 2 --ties"
    " --assessor robot",
    "label judge labels --assessor robot --function judge:better",
    "label backup labels -o labels.db",
    "label backup labels -o labels.jsonl",
)
READ = (
    "label export labels --content truth --format qrels -o -",
    "label export labels --content pairs -o -",
    "label restore labels.db from-db",
    "label export from-db --content truth --format qrels -o -",
    "label restore labels.jsonl from-lines",
    "label export from-lines --content pairs -o -",
    "candidates shop.index queries.jsonl --depth 6 -o -",
    "search shop.index red_shoe --model model.json --json",
    "rank model.json data.npz -o -",
    "rank trees.json train.txt -o -",
    "index products.jsonl --sync -o shop.index",
)


def write_inputs(folder: Path) -> None:
    """Write products, queries, judgments, and a program that prefers what is more expensive."""
    products = [
        {"id": f"sku-{i}", "title": f"{color} {name}", "price": 10.0 + i * 7 % 24,
         "text": f"A {color} {name} for women and men, for {10 + i * 7 % 24}"}
        for i, (name, color) in enumerate((n, c) for n in NAMES for c in COLORS)
    ]  # fmt: skip
    queries = [{"id": f"q{i}", "text": text} for i, text in enumerate(QUERIES)]
    for name, rows in (("products", products), ("queries", queries)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    judgments = [(0, 0, 2), (0, 16, 1), (1, 5, 2), (2, 11, 2), (3, 14, 2), (4, 20, 1)]
    lines = [f"q{query} 0 sku-{document} {grade}\n" for query, document, grade in judgments]
    (folder / "shop.qrels").write_text("".join(lines))
    (folder / "judge.py").write_text(JUDGE)
    letor = [f"{i * 7 % 3} qid:{i // 10} 1:{i * 7 % 3 + i % 4 / 4} 2:{i % 5}" for i in range(200)]
    (folder / "train.txt").write_text("\n".join(letor) + "\n")


def printed(command: str, folder: Path, firstpage: str) -> str:
    """Run a command in a folder; return its standard output."""
    words = [word.replace("_", " ") for word in command.split()]
    done = subprocess.run(
        [firstpage, *words], cwd=folder, capture_output=True, text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([".", os.environ.get("PYTHONPATH", "")])},
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(f"firstpage {command}\n{done.stderr}")
    return done.stdout


def main(version: str, firstpage: str = str(Path(sys.executable).with_name("firstpage"))) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name, "files")
        folder.mkdir()
        write_inputs(folder)
        for command in WRITE:
            printed(command, folder, firstpage)
        read = shutil.copytree(folder, Path(name, "read"))
        expected = {command: printed(command, read, firstpage) for command in READ}
        (folder / EXPECTED).write_text(json.dumps(expected, indent=1))
        with ZipFile(FILES / f"{version}.zip", "w", ZIP_DEFLATED, compresslevel=9) as archive:
            for path in sorted(folder.rglob("*")):
                archive.write(path, path.relative_to(folder))
        print(f"{version}.zip: {(FILES / f'{version}.zip').stat().st_size} bytes")


if __name__ == "__main__":
    main(*sys.argv[1:])
