"""The numbers printed in the paper.

Table 5 has the row of FocusedBoost twice; the second copy is used, as the first has damaged digits.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from firstpage.core import Floats

METHODS = (
    "SVM-MAP", "RankSVM", "FocusedSVM", "AdaRank", "RankBoost", "FocusedBoost", "ListNet",
    "RankNet", "FocusedNet", "Top-k ListMLE",
)  # fmt: skip
CUTS = range(1, 11)
GRADED = (*(f"NDCG@{n}" for n in CUTS), "ERR")
TOP_K = (*(f"kNDCG@{n}" for n in CUTS), "kERR")

# Tables 4 and 5: a row per method of METHODS; columns @1 to @10 and ERR.
MQ2007_GRADED = """
.4006 .4039 .4111 .4128 .4165 .4217 .4266 .4322 .4363 .4419 .3146
.4118 .4058 .4051 .4099 .4173 .4216 .4267 .4320 .4380 .4447 .3178
.4060 .4083 .4077 .4079 .4123 .4179 .4234 .4299 .4351 .4400 .3196
.3789 .3941 .3955 .4024 .4066 .4119 .4169 .4225 .4287 .4345 .3061
.3972 .4051 .4062 .4095 .4150 .4197 .4260 .4316 .4374 .4438 .3101
.3947 .4098 .4110 .4132 .4164 .4235 .4282 .4317 .4368 .4422 .3199
.4114 .4110 .4134 .4153 .4204 .4243 .4300 .4332 .4389 .4442 .3206
.4013 .4086 .4076 .4118 .4156 .4211 .4267 .4330 .4379 .4451 .3157
.3968 .4103 .4126 .4153 .4191 .4245 .4301 .4341 .4403 .4459 .3223
.4057 .4091 .4115 .4143 .4188 .4247 .4293 .4346 .4392 .4443 .3168
"""
MQ2007_TOP_K = """
.4530 .5023 .5389 .5702 .5951 .6178 .6346 .6479 .6591 .6690 .6227
.4545 .4932 .5315 .5664 .5930 .6135 .6306 .6445 .6564 .6655 .6205
.4539 .5087 .5448 .5773 .6024 .6224 .6404 .6527 .6646 .6739 .6287
.3896 .4438 .4745 .5062 .5358 .5575 .5777 .5952 .6089 .6190 .5637
.4438 .4825 .5243 .5567 .5850 .6066 .6234 .6361 .6476 .6571 .6131
.4529 .4943 .5312 .5633 .5918 .6123 .6288 .6420 .6523 .6628 .6187
.4541 .4937 .5314 .5669 .5922 .6132 .6299 .6419 .6530 .6613 .6195
.4490 .4875 .5269 .5586 .5865 .6077 .6249 .6390 .6512 .6603 .6143
.4623 .5108 .5460 .5783 .6028 .6240 .6409 .6529 .6633 .6735 .6336
.4570 .4991 .5356 .5719 .5969 .6176 .6339 .6476 .6585 .6673 .6228
"""
TD2003_GRADED = """
.5055 .5356 .5335 .5374 .5515 .5584 .5669 .5743 .5763 .5801 .5102
.5019 .5409 .5446 .5657 .5816 .5829 .5867 .5847 .5905 .5991 .5072
.5126 .5505 .5498 .5633 .5642 .5656 .5642 .5761 .5840 .5885 .5129
.5278 .5436 .5619 .5740 .5774 .5797 .5845 .5872 .5944 .5982 .5132
.5230 .5094 .5179 .5362 .5456 .5507 .5555 .5623 .5640 .5750 .5119
.5486 .5275 .5356 .5532 .5554 .5706 .5790 .5856 .5876 .5955 .5466
.5229 .5480 .5514 .5663 .5736 .5804 .5885 .5949 .5944 .5985 .5225
.4971 .5304 .5612 .5638 .5642 .5765 .5817 .5837 .5895 .5983 .5059
.5265 .5660 .5642 .5706 .5780 .5804 .5848 .5898 .5948 .6082 .5660
.4994 .5190 .5356 .5504 .5540 .5717 .5746 .5798 .5861 .5885 .5083
"""
TD2003_TOP_K = """
.2248 .2822 .2884 .2973 .3271 .3359 .3459 .3606 .3769 .3858 .3839
.2246 .2893 .2921 .3083 .3253 .3387 .3561 .3703 .3794 .3872 .4025
.2243 .2965 .2958 .3192 .3235 .3415 .3662 .3801 .3819 .3886 .4041
.2029 .2979 .2995 .3116 .3289 .3379 .3427 .3574 .3656 .3766 .3777
.2082 .2931 .2921 .3103 .3255 .3365 .3576 .3654 .3782 .3789 .3970
.2583 .3168 .3124 .3191 .3346 .3517 .3634 .3732 .3861 .3980 .4214
.2685 .2731 .2694 .2789 .3044 .3142 .3252 .3404 .3514 .3624 .3962
.2776 .2946 .2946 .3021 .3227 .3372 .3470 .3688 .3763 .3813 .4199
.2473 .3268 .3237 .3223 .3507 .3605 .3705 .3769 .3849 .4058 .4603
.2389 .2861 .3055 .3222 .3480 .3552 .3668 .3702 .3913 .4007 .4028
"""
BLOCKS = {
    ("MQ2007", "graded"): MQ2007_GRADED, ("MQ2007", "top-k"): MQ2007_TOP_K,
    ("TD2003", "graded"): TD2003_GRADED, ("TD2003", "top-k"): TD2003_TOP_K,
}  # fmt: skip

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
    lines = BLOCKS[data, truth].split("\n")[1:-1]
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
