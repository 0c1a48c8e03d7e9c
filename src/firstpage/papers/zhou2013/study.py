"""The study of Zhou et al. (2013)."""

from __future__ import annotations

from firstpage.papers.study.study import Study
from firstpage.papers.zhou2013 import asking, lists, side_by_side, simulated

_ALL = (*simulated.ENTRIES, *lists.ENTRIES, *side_by_side.ENTRIES, *asking.ENTRIES)
ZHOU2013 = Study(
    "zhou2013",
    "Zhou, Zha, Chang, Xue: Learning the Gain Values and Discount Factors of Discounted "
    "Cumulative Gains (2013)",
    {entry.name: entry for entry in _ALL},
    (  # what computes; claims may be worded anew without computing anew
        "firstpage.papers.zhou2013.worlds", "firstpage.papers.zhou2013.web",
        "firstpage.papers.zhou2013.news",
        "firstpage.papers.zhou2013.active", "firstpage.dcglearn",
        "firstpage.kernels.losses.preferences", "firstpage.data.preferences",
    ),
)  # fmt: skip
