"""The study of Zhou et al. (2013)."""

from __future__ import annotations

from firstpage.studies.base import Study
from firstpage.studies.zhou2013 import asking, judged, lists, simulated

_ALL = (*simulated.ENTRIES, *lists.ENTRIES, *judged.ENTRIES, *asking.ENTRIES)
ZHOU2013 = Study(
    "zhou2013",
    "Zhou, Zha, Chang, Xue: Learning the Gain Values and Discount Factors of Discounted "
    "Cumulative Gains (2013)",
    {entry.name: entry for entry in _ALL},
    (  # what computes; claims may be worded anew without computing anew
        "firstpage.studies.zhou2013.worlds", "firstpage.studies.zhou2013.web",
        "firstpage.studies.zhou2013.editors", "firstpage.studies.zhou2013.news",
        "firstpage.studies.zhou2013.active", "firstpage.dcglearn",
        "firstpage.kernels.preferences", "firstpage.data.preferences", "firstpage.data.utility",
    ),
)  # fmt: skip
