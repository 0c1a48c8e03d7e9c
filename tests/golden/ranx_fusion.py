"""Write tests/golden/ranx_fusion.json with ranx (0.3.21) in an environment of its own.

    NUMBA_DISABLE_JIT=1 python tests/golden/ranx_fusion.py

Three runs list some of twelve documents of three queries, with scores that are all different.
Without just-in-time compilation, ranx computes the same numbers without compiling for minutes.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

METHODS: dict[str, dict[str, Any]] = {
    "min": {}, "med": {}, "max": {}, "sum": {}, "anz": {}, "mnz": {}, "rrf": {"k": 60},
    "rbc": {"phi": 0.8}, "isr": {}, "log_isr": {}, "logn_isr": {"sigma": 0.1}, "bordafuse": {},
    "wsum": {"weights": [0.5, 0.3, 0.2]}, "w_bordafuse": {"weights": [0.5, 0.3, 0.2]},
}  # fmt: skip
NORMALIZATIONS = ["min-max", "max", "sum", "zmuv", "rank", "borda"]


def make_runs() -> list[dict[str, dict[str, float]]]:
    rng = random.Random(0)
    runs = []
    for a in range(3):
        run = {}
        for q in range(3):
            docs = rng.sample(range(12), (5, 8, 10)[(a + q) % 3])
            scores = sorted((round(rng.uniform(0.5, 30), 3) for _ in docs), reverse=True)
            run[f"q{q}"] = dict(zip((f"d{d}" for d in docs), scores, strict=True))
        runs.append(run)
    return runs


def main() -> None:
    from ranx import Run, fuse

    runs = make_runs()
    given = [Run(run) for run in runs]
    cases = []
    for method, parameters in METHODS.items():
        by_score = method in ("min", "med", "max", "sum", "anz", "mnz", "wsum")
        for norm in NORMALIZATIONS if by_score else [None]:
            fused = fuse(given, norm=norm, method=method, params=dict(parameters))
            scores = {q: {d: float(s) for d, s in docs.items()} for q, docs in fused.run.items()}
            cases.append({"method": method, "norm": norm, "params": parameters, "scores": scores})
    path = Path(__file__).with_suffix(".json")
    path.write_text(json.dumps({"runs": runs, "cases": cases}, indent=None) + "\n")


if __name__ == "__main__":
    main()
