"""Measure the results that pages show, and write them to docs/made/results.json.

    python docs/results.py DATA               # all of them, in about half an hour of CPU time
    python docs/results.py DATA ties trees    # some of them

DATA is a folder with mq2008 and ohsumed.  `trees` and `tree ablation` need the peers of
benchmarks/requirements.txt.  `make docs` then writes the tables of the pages, and a test compares
them with the file.
"""

from __future__ import annotations

import json
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

from made.results import FILE

ROOT = Path(__file__).parents[1]
SHOWN = "-t NDCG@1 -t NDCG@5 -t NDCG@10 -t AP --convention letor"
ALL = (
    "Regression RankNet ListNet ListMLE RankCosine FocusedNet RankSVM SVMMAP FocusedSVM TopMargin "
    'TopSlack RankBoost AdaRank FocusedBoost LambdaMART TopRank "ListMLE(k=10)" '
    '"ListMLE(k=10, scorer=trees)" --seeds 3 -t NDCG@1 -t NDCG@10 -t AP '
    '--baseline "ListMLE(k=10)"'
)
BOOSTED = "RankBoost AdaRank.MAP AdaRank.NDCG"
COMMANDS = {
    "ohsumed, tuned": f"firstpage crossval ohsumed RankSVM --tune --normalize minmax {SHOWN}",
    "ohsumed, boosted": f"firstpage crossval ohsumed {BOOSTED} --normalize minmax {SHOWN}",
    "mq2008, tuned": f"firstpage crossval mq2008 RankSVM --tune {SHOWN}",
    "mq2008, boosted": f"firstpage crossval mq2008 {BOOSTED} {SHOWN}",
    "ties": 'firstpage crossval mq2008 "ListMLE(k=10)" "ListMLE(k=10, ties=random)" '
    "--convention letor --seeds 5",
    "mq2008, all rankers": f"firstpage crossval mq2008 {ALL}",
    "ohsumed, all rankers": f"firstpage crossval ohsumed {ALL} --normalize minmax",
    "trees": "python benchmarks/quality.py --data . --sets mq2008,ohsumed --seeds 0,1,2",
    "tree ablation": "python benchmarks/quality.py --data . --sets mq2008,ohsumed --seeds 0,1,2 "
    "--ablation",
}


def measured(command: str, data: Path) -> dict:
    """Return the values that a command writes as JSON."""
    python = f'"{sys.executable}"'
    line = command.replace("firstpage ", f"{python} -m firstpage ", 1)
    line = line.replace("python benchmarks", f"{python} {ROOT}/benchmarks", 1)
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder, "values.json")
        flag = "-o" if command.startswith("firstpage") else "--json"
        subprocess.run(f'{line} {flag} "{output}"', shell=True, check=True, cwd=data)
        return json.loads(output.read_text())


def main(data: Path, *names: str) -> None:
    recorded = json.loads(FILE.read_text())
    for name in names or COMMANDS:
        values = measured(COMMANDS[name], data)
        values.pop("chosen", None)
        recorded[name] = {
            "command": COMMANDS[name], "machine": platform.machine(), "values": values,
        }  # fmt: skip
        FILE.write_text(json.dumps(recorded, indent=1) + "\n")
        print(f"{name}: wrote {FILE}")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]), *sys.argv[2:])
