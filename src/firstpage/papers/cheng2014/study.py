"""The study of Cheng, Sun and Xie (2014)."""

from __future__ import annotations

from collections.abc import Callable

from firstpage.papers.cheng2014 import training, verdicts
from firstpage.papers.cheng2014.training import SCALINGS, TARGETS
from firstpage.papers.study.letor_protocol import ROOMS, over_folds
from firstpage.papers.study.study import Cells, Claim, Drawing, Entry, Grid, Row, Study, Work

SAME = [1.0, 100.0]
SEEDS, HASTE = 5, 2
SETS = {"OHSUMED": "ohsumed", "TD2003": "td2003", "TD2004": "td2004", "MQ2008": "mq2008"}
HOW = (
    "Trained twice, for NDCG (what N@k shows) and for precision at 10 (P@k).  On validation data "
    "every ranker chooses among four values: C of TopSlack, TopMargin and RankSVM among .001, .1, "
    "10, 1000 (the paper tries 1e-5, 1e-4 .. 1e5: at the low end nothing changes any more, and at "
    "the high end cutting planes take minutes), the penalty of the others among .0001 .. .1.  "
    "TopSlack and TopMargin start from least squares and order equal labels by score.  Features "
    "are scaled within queries; measured as LETOR's tool does; errors are over queries."
)
HELD = (
    "queries, folds, scaling of features, linear scores, four values of one parameter to choose "
    "from for every ranker on the same validation data by the same measure (NDCG@10 or P@10), and "
    "the optimum of a convex loss, or cutting planes to the same gap."
)
AGAINST_VOTES = (
    "  Not equal: TopRank reorders the candidates of TopSlack by three more rankers, whose weights "
    "are chosen on the validation data, too; that is the method."
)
AGAINST_ALL = (
    AGAINST_VOTES + "  TopSlack and TopMargin order equal labels by score, Top-10 ListMLE at "
    "random (five seeds), as in its paper; the others learn from the grades."
)
OURS = "  These data are ours, not the paper's."
NO_NUMBERS = "  The paper has bars and no numbers."


def _compared(data: str, listmle: bool = False) -> list[Work]:
    works = []
    for target in TARGETS:
        params = {"data": data, "target": target}
        works += over_folds(training.compared, params, SETS[data], chance=False)
        if listmle:
            works += over_folds(training.likelihood, params, SETS[data], runs=SEEDS, quick=HASTE)
    return works


def _named(figure: int, data: str) -> str:
    return f"figure{figure}" if data == "OHSUMED" else f"figure{figure}-{data.lower()}"


def _bars(row: Row) -> bool:
    return "variant" not in row


def _scalings(row: Row) -> bool:
    return _bars(row) and row["model"] in SCALINGS


def _slack(row: Row) -> bool:
    return _bars(row) and row["model"] in ("TopSlack", "TopRank")


def _variants(row: Row) -> bool:
    return "variant" in row


def _figure(
    figure: int, data: str, title: str, says: str, keep: Callable[[Row], bool],
    claims: Callable[[Cells], list[Claim]],
) -> Entry:  # fmt: skip
    note = HOW + (NO_NUMBERS if data in verdicts.PAPERS else OURS)
    return Entry(
        _named(figure, data), f"{title} on {data}", says, _compared(data, figure == 4), claims,
        [("", Drawing("model", None, f"N and P at 1, 3, 10 on {data}"))], keep, note=note,
        grids=[("", Grid("model", "measure"))],
        held_equal=HELD + ("", AGAINST_VOTES, AGAINST_ALL)[figure - 2],
    )  # fmt: skip


def _figures(data: str) -> list[Entry]:
    return [
        _figure(2, data, "TopSlack and TopMargin",
                "Slack scaling is in general more accurate than margin scaling: better at 5 of 6 "
                "points of OHSUMED, 4 of TD2004, 3 of TD2003.", _scalings, verdicts.scalings(data)),
        _figure(3, data, "TopRank and TopSlack",
                "Aggregation is better than TopSlack at all measures on all data.", _slack,
                verdicts.aggregated(data)),
        _figure(4, data, "TopRank and all others",
                "The two top-k rankers are significantly better than all others at all measures; "
                "TopRank is the best at 11 of 18 points and the second at the rest.", _bars,
                verdicts.beside(data)),
    ]  # fmt: skip


def _overall() -> Entry:
    works = [w for data in verdicts.PAPERS for w in _compared(data, True)]
    return Entry(
        "figure4-all", "TopRank's places on all three data sets",
        "TopRank is the best at 11 of 18 points and the second at the other 7.",
        works, verdicts.overall, keep=_bars, note=HOW + NO_NUMBERS,
        grids=[(data, Grid("model", "measure", data)) for data in verdicts.PAPERS],
        held_equal=HELD + AGAINST_ALL,
    )  # fmt: skip


def _votes(data: str) -> Entry:
    return Entry(
        f"votes-{data.lower()}", f"What of the votes matters on {data}",
        "Nothing: it fixes t, k and the weights.",
        _compared(data), verdicts.variants, keep=_variants,
        note="Each line changes one thing of the first.  As printed: credit among the first half "
        "of 100 candidates, weights by what voters measure on validation data.",
        grids=[("", Grid("variant", "measure"))],
        held_equal="the fitted rankers, their scores, the candidates' base order and the "
        "validation queries of the weights; each variant changes what it names, and nothing else.",
    )  # fmt: skip


def _same(data: str) -> Entry:
    works = [
        work
        for target in TARGETS
        for cost in SAME
        for work in over_folds(
            training.scaled, {"data": data, "target": target, "cost": cost}, SETS[data],
            chance=False,
        )
    ]  # fmt: skip
    return Entry(
        f"scaling-{data.lower()}", f"Slack and margin scaling, all else alike, on {data}",
        "Slack scaling is the better behaved one.",
        works, verdicts.same_start,
        note="One C for both, the same least-squares start, the same true ranking (equal labels by "
        "score).  Where the optimum is w = 0 the order of the start is kept; such folds are "
        "counted.  TopSlack, there, also tries the direction of TopMargin.",
        held_equal="everything but the scaling: queries, folds, features, C, the start, the true "
        "ranking, the gap at which cutting planes stop; nothing is chosen.  Not equal: where it is "
        "at w = 0, TopSlack also tries the direction of TopMargin.",
    )  # fmt: skip


def _all() -> list[Entry]:
    """Figure by figure; what is ours last."""
    by = {data: _figures(data) for data in SETS}
    figures = [by[data][i] for i in range(3) for data in SETS]
    ours = [make(data) for make in (_same, _votes) for data in ("OHSUMED", "MQ2008")]
    return [*figures, _overall(), *ours]


CHENG2014 = Study(
    "cheng2014",
    "Cheng, Sun, Xie: TopRank: A Novel Top-k Ranking Method Based on Rank Aggregation (2014)",
    {entry.name: entry for entry in _all()},
    ("firstpage.papers.cheng2014.training", "firstpage.aggregation", *ROOMS),
)
