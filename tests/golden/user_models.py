"""Write tests/golden/user_models.json with ir_measures (0.4.3) and cwl-eval in an environment of its own.

    python tests/golden/user_models.py

Four runs without ties, some of whose documents are unjudged.
"""

from __future__ import annotations

import json
import random
from importlib.metadata import version
from pathlib import Path

TEXTS = [
    "INST(max_rel=3)", "INST(T=2.5,max_rel=3)", "INST(min_rel=1,max_rel=3)", "INSQ(max_rel=3)",
    "INSQ(T=3.0,max_rel=4)", "BPM(max_rel=3)@10", "BPM(T=2.0,max_rel=3)@5", "SDCG(max_rel=3)@10",
    "SDCG(max_rel=4)@5", "NERR8(max_rel=3)@10", "NERR8(max_rel=4)@5", "NERR9(max_rel=3)@10",
    "NERR10(max_rel=4)", "NERR10(p=0.8,max_rel=4)", "NERR11(max_rel=4)", "NERR11(T=2.0,max_rel=4)",
]  # fmt: skip


def main() -> None:
    import ir_measures

    rng = random.Random(25)
    run: dict[str, dict[str, float]] = {}
    qrels: dict[str, dict[str, int]] = {}
    for q in range(4):
        docs = [f"d{i}" for i in range(12 + 10 * q)]
        qrels[f"q{q}"] = {d: rng.choice([0, 0, 0, 1, 2, 3]) for d in docs if rng.random() < 0.8}
        rng.shuffle(docs)
        run[f"q{q}"] = {d: float(1000 - i) for i, d in enumerate(docs[: 8 + 8 * q])}
    values: dict[str, dict[str, float]] = {}
    measures = {ir_measures.parse_measure(text): text for text in TEXTS}
    for row in ir_measures.iter_calc(list(measures), qrels, run):
        values.setdefault(row.query_id, {})[measures[row.measure]] = round(float(row.value), 12)
    source = f"ir_measures {version('ir_measures')} with cwl-eval {version('cwl-eval')}"
    case = {"name": "graded", "run": run, "qrels": qrels, "values": values}
    path = Path(__file__).with_suffix(".json")
    path.write_text(json.dumps({"source": source, "cases": [case]}) + "\n")


if __name__ == "__main__":
    main()
