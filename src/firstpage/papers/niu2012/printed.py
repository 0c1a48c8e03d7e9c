"""The numbers printed in the paper.

Table 5 has the row of FocusedBoost twice; the second copy is used, as the first has damaged digits.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from firstpage.core import Floats
from firstpage.papers.tables import tables_beside

METHODS = (
    "SVM-MAP", "RankSVM", "FocusedSVM", "AdaRank", "RankBoost", "FocusedBoost", "ListNet",
    "RankNet", "FocusedNet", "Top-k ListMLE",
)  # fmt: skip
CUTS = range(1, 11)
GRADED = (*(f"NDCG@{n}" for n in CUTS), "ERR")
TOP_K = (*(f"kNDCG@{n}" for n in CUTS), "kERR")

# Tables 4 and 5, by data and truth: a row per method of METHODS, with columns @1 to @10 and ERR.
BLOCKS: dict[str, dict[str, str]] = tables_beside(__file__)

# Section 4.2.2: gains of FocusedBoost on Top-k MQ2007, in percent.
GAINS = {
    ("AdaRank", "kNDCG@10"): 7.08, ("RankBoost", "kNDCG@10"): 0.87,
    ("AdaRank", "kERR"): 9.76, ("RankBoost", "kERR"): 0.91,
}  # fmt: skip

# Table 1: seconds per judgment, minutes per query, judgments per query.
EFFORT = {"heap": (5.51, 13.13, 142.76), "five-grade": (13.87, 11.78, 50.0)}

# Tables 2 and 3: the rows are the relations of one assessor, the columns those of the other.
SIGNS = ("A≻B", "A∼B", "A≺B")
AGREEMENT = {
    "top-k": ((0.6749, 0.2766, 0.0485), (0.1138, 0.8198, 0.0664), (0.1047, 0.3779, 0.5174)),
    "graded": ((0.6272, 0.2913, 0.0815), (0.2825, 0.5232, 0.1944), (0.1534, 0.3826, 0.4640)),
}
OVERALL = {"top-k": 0.745, "graded": 0.547}
WITHOUT_TIES = {"top-k": 0.897, "graded": 0.831}

# LETOR 4.0's baselines on MQ2008, NDCG@10 by its own tool: the mean over five test folds.
LETOR_MQ2008 = {
    "RankSVM": ("RankSVM-Struct", 0.2279),
    "RankBoost": ("RankBoost", 0.2255),
    "AdaRank": ("AdaRank-NDCG", 0.2307),
}


def table(data: str, truth: str) -> dict[tuple[str, str], float]:
    """Return a block of Table 4 or 5, by method and measure."""
    columns = GRADED if truth == "graded" else TOP_K
    lines = BLOCKS[data][truth].splitlines()
    return {
        (method, measure): float(value)
        for method, line in zip(METHODS, lines, strict=True)
        for measure, value in zip(columns, line.split(), strict=True)
    }


def cells(data: str) -> Iterator[tuple[dict[str, Any], float]]:
    """Yield all printed values of a data set, with the labels of our rows."""
    for truth in ("graded", "top-k"):
        for (method, measure), value in table(data, truth).items():
            yield {"data": data, "truth": truth, "model": method, "measure": measure}, value


def joint_agreement(tool: str) -> Floats:
    """Return a table of agreement as fractions of all pairs.

    The paper prints fractions of rows; the weights of the rows follow from the two totals in the
    text, overall and without ties: three equations with three unknowns.
    """
    rows = np.array(AGREEMENT[tool])
    without_ties = WITHOUT_TIES[tool]
    strict_equation = np.array(
        [
            rows[0, 0] - without_ties * (rows[0, 0] + rows[0, 2]),
            0.0,
            rows[2, 2] - without_ties * (rows[2, 2] + rows[2, 0]),
        ]
    )
    system = np.array([np.ones(3), np.diag(rows), strict_equation])
    row_weights: Floats = np.linalg.solve(system, [1.0, OVERALL[tool], 0.0])
    fractions: Floats = row_weights[:, None] * rows
    return fractions
