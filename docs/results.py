"""Measure the results that pages show, and write them to docs/made/results.json.

    python docs/results.py DATA               # all of them, in about an hour of CPU time
    python docs/results.py DATA ties rivals   # some of them

DATA is a folder with mq2008, ohsumed, ukpconvarg1, cast2019, judges and passages.  `make docs` then
writes the tables of the pages, and a test compares them with the file.
"""

from __future__ import annotations

import json
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from made.results import FILE

ROOT = Path(__file__).parents[1]
SHOWN = "-t NDCG@1 -t NDCG@5 -t NDCG@10 -t AP --convention letor"
ALL = (
    "Regression RankNet ListNet ListMLE RankCosine FocusedNet RankSVM SVMMAP FocusedSVM TopMargin "
    'TopSlack RankBoost AdaRank FocusedBoost LambdaMART TopRank "ListMLE(k=10)" '
    '--seeds 3 -t NDCG@1 -t NDCG@10 -t AP --baseline "ListMLE(k=10)"'
)
BOOSTED = "RankBoost AdaRank.MAP AdaRank.NDCG"
VARIANTS = (
    'AdaRank.NDCG "AdaRank.NDCG(halvings=None)" RankBoost "RankBoost(weak=stumps(bins=16))" '
    '"RankBoost(weak=stumps(bins=256))" "RankBoost(weak=stumps(signs=plus))" '
    '"RankBoost(weak=features)"'
)
STRATEGIES = "adaptive tournament insertion heap heap-closure quick-sort"
COMMANDS = {
    "ohsumed, tuned": f"firstpage crossval ohsumed RankSVM --tune --normalize minmax {SHOWN}",
    "ohsumed, boosted": f"firstpage crossval ohsumed {BOOSTED} --normalize minmax {SHOWN}",
    "mq2008, tuned": f"firstpage crossval mq2008 RankSVM --tune {SHOWN}",
    "mq2008, boosted": f"firstpage crossval mq2008 {BOOSTED} {SHOWN}",
    "ties": 'firstpage crossval mq2008 "ListMLE(k=10)" "ListMLE(k=10, ties=random)" '
    "--convention letor --seeds 5",
    "mq2008, all rankers": f"firstpage crossval mq2008 {ALL}",
    "ohsumed, all rankers": f"firstpage crossval ohsumed {ALL} --normalize minmax",
    "mq2008, variants": f"firstpage crossval mq2008 {VARIANTS} {SHOWN}",
    "ohsumed, variants": f"firstpage crossval ohsumed {VARIANTS} --normalize minmax {SHOWN}",
    "cost of rankers": "python benchmarks/rankers.py mq2008",
    "strategies": "firstpage label simulate --votes ukpconvarg1/votes.csv --k 10 "
    + " ".join(f"--strategy {name}" for name in STRATEGIES.split())
    + "".join(f" --budget {budget}" for budget in (20, 40, 60, 80, 140)),
    "coverage": "python benchmarks/machines.py coverage --data .",
    "routing": "python benchmarks/machines.py routing --topics 8 --data .",
    "rivals": "python benchmarks/label_rivals.py --data . --queries 40",
    "real machines": "python benchmarks/label_machines.py --data .",
}


FLAGS = {"firstpage crossval": "-o", "firstpage label": "--json >", "python": "--json"}


def rounded(text: str) -> float:
    return round(float(text), 6)


def measured(command: str, data: Path) -> dict[str, Any]:
    """Return the values that a command writes as JSON."""
    python = f'"{sys.executable}"'
    line = command.replace("firstpage ", f"{python} -m firstpage ", 1)
    line = line.replace("python benchmarks", f"{python} {ROOT}/benchmarks", 1)
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder, "values.json")
        flag = next(flag for start, flag in FLAGS.items() if command.startswith(start))
        subprocess.run(f'{line} {flag} "{output}"', shell=True, check=True, cwd=data)
        values: dict[str, Any] = json.loads(output.read_text(), parse_float=rounded)
    for name in ("chosen", "recall_by_query"):
        values.pop(name, None)
        for row in values.get("results", []):
            row.pop(name, None)
    return values


def main(data: Path, *names: str) -> None:
    recorded = json.loads(FILE.read_text())
    for name in names or COMMANDS:
        values = measured(COMMANDS[name], data)
        recorded[name] = {
            "command": COMMANDS[name],
            "machine": platform.machine(),
            "values": values,
        }
        FILE.write_text(json.dumps(recorded, indent=1) + "\n")
        print(f"{name}: wrote {FILE}")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]), *sys.argv[2:])
