"""Verdicts on what the paper says about its tables, and on our own bars."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from firstpage.papers.study.claims import alike, every, greater, no_greater, reaches, within
from firstpage.papers.study.letor_protocol import FOLDS
from firstpage.papers.study.study import Cell, Cells, Claim
from firstpage.papers.xia2009.printed import LETOR, MEASURES
from firstpage.papers.xia2009.training import CHOSEN, SETTINGS
from firstpage.types import Floats

TOPS = ("Top-1 ListMLE", "Top-3 ListMLE", "Top-10 ListMLE")
BEST = "Top-10 ListMLE"
COMPARABLE = 0.05  # the paper's own "comparable" numbers are up to .029 apart
FIRST, LATER = 0.04, 0.02  # how far below the printed numbers is still fine: first place, others
PUBLISHED = 0.01  # below LETOR's published means


def seeds_of(cell: Cell) -> Floats:
    """The mean over folds, seed by seed: values are in the order of folds, then of seeds."""
    found: Floats = cell.values.reshape(len(FOLDS), -1).mean(axis=0)
    return found


def _spread(cell: Cell) -> str:
    """How far seeds are apart."""
    means = seeds_of(cell)
    if len(means) < 2:
        return ""
    return f" (seeds {means.min():.3f} to {means.max():.3f})"


def ohsumed(cells: Cells) -> list[Claim]:
    """Table 1."""
    found = [
        every(f"{top} is comparable to ListMLE: less than {COMPARABLE} apart at every measure", [
            alike(m, cells.at(method=top, measure=m), cells.at(method="ListMLE", measure=m),
                  COMPARABLE)
            for m in MEASURES
        ])
        for top in TOPS
    ]  # fmt: skip
    found += [
        every(f"{name} is not below the printed numbers by more than {FIRST} at the first place "
              f"and {LATER} at 3 and 10",
              [_reaches(cells.one(method=name, measure=m)) for m in MEASURES], whose="ours")
        for name in ("ListMLE", BEST)
    ]  # fmt: skip
    return found + [_noise(cells, name) for name in TOPS[:2]]


def _reaches(cell: Cell) -> Claim:
    assert cell.paper is not None
    measure = str(cell.where["measure"])
    return reaches(measure, cell.ours, cell.paper, FIRST if measure.endswith("@1") else LATER)


def _noise(cells: Cells, name: str) -> Claim:
    """Whether what differs from the paper is within what queries and seeds differ by."""
    parts = []
    for measure in MEASURES:
        cell = cells.one(method=name, measure=measure)
        assert cell.paper is not None
        far = round(2 * (cell.se or 0.0), 3)
        low, high = round(cell.paper - far, 3), round(cell.paper + far, 3)
        parts.append(within(measure, cell.units, low, high, _spread(cell)))
    text = f"{name}: the printed numbers lie within two standard errors (over queries) of ours"
    return every(text, parts, whose="ours")


def boosted(cells: Cells) -> list[Claim]:
    """Tables 2, 3: "significantly boosted, in terms of all measures"."""
    found = [
        every(f"{top} is better than ListMLE at every measure", [
            greater(m, cells.at(method=top, measure=m), cells.at(method="ListMLE", measure=m))
            for m in MEASURES
        ])
        for top in TOPS
    ]  # fmt: skip
    return [*found, _same_first(cells)]


def _same_first(cells: Cells) -> Claim:
    text = "NDCG@1 equals P@1, as there are two grades"
    apart = max(
        float(
            np.abs(cells.at(method=n, measure="NDCG@1") - cells.at(method=n, measure="P@1")).max()
        )
        for n in cells.names("method")
    )
    why = f"on no query they are more than {apart:.2g} apart"
    return Claim(text, "holds" if apart < 1e-5 else "does not hold", why)


def by_settings(claims: Callable[[Cells], list[Claim]]) -> Callable[[Cells], list[Claim]]:
    """The same claims of the rows with defaults, and of those with chosen parameters."""

    def judge(cells: Cells) -> list[Claim]:
        return [
            replace(claim, text=f"{claim.text} ({settings})")
            for settings in cells.names("settings")
            for claim in claims(_of(cells, settings))
        ]

    return judge


def _of(cells: Cells, settings: str) -> Cells:
    return Cells(c for c in cells if c.where["settings"] == settings)


def beside(cells: Cells) -> list[Claim]:
    """Table 4: OHSUMED."""
    others = [c for c in cells.names("method") if c != BEST]

    def mean(measure: str) -> Floats:
        found: Floats = np.mean([cells.at(method=o, measure=measure) for o in others], axis=0)
        return found

    fair = [no_greater(m, mean(m), cells.at(method=BEST, measure=m), COMPARABLE) for m in MEASURES]
    return [
        every(f"{BEST} performs fairly well: the mean of the others is less than {COMPARABLE} "
              "above it at every measure", fair),
        first_place(cells, others),
    ]  # fmt: skip


def table4(cells: Cells) -> list[Claim]:
    """Both kinds; LETOR's means against defaults, as those with a choice are in `trainings`."""
    own = _of(cells, SETTINGS[0])
    return by_settings(beside)(cells) + [
        _published(f"{name} is not below LETOR's published means", own, name) for name in LETOR
    ]


def first_place(cells: Cells, others: Sequence[str]) -> Claim:
    """ "For N@1 and P@1, it significantly outperforms all the other methods"."""
    return every(f"{BEST} is significantly better than all others at NDCG@1 and P@1", [
        greater(f"{o}, {m}", cells.at(method=BEST, measure=m), cells.at(method=o, measure=m))
        for m in ("NDCG@1", "P@1") for o in others
    ])  # fmt: skip


def best(cells: Cells) -> list[Claim]:
    """Tables 5, 6."""
    others = [c for c in cells.names("method") if c != BEST]
    return [_almost_all(cells, others), first_place(cells, others)]


def _almost_all(cells: Cells, others: Sequence[str]) -> Claim:
    """All but one, by the means; how many are more than chance is said too."""
    own = {m: cells.one(method=BEST, measure=m) for m in MEASURES}
    rivals = {
        m: max((cells.one(method=o, measure=m) for o in others), key=lambda c: c.ours)
        for m in MEASURES
    }
    leads = {m: own[m].ours - rivals[m].ours for m in MEASURES}
    won = [m for m in MEASURES if leads[m] >= 0]
    tested = [greater(m, own[m].units, rivals[m].units) for m in MEASURES]
    clear = sum(claim.verdict == "holds" for claim in tested)
    told = ", ".join(f"{m} {leads[m]:+.3f} ({rivals[m].where['method']})" for m in MEASURES)
    return Claim(
        f"{BEST} is the best at almost all measures (all but one)",
        "holds" if len(won) >= len(MEASURES) - 1 else "does not hold",
        f"ahead at {len(won)} of {len(MEASURES)}, {clear} of them by more than chance: {told}",
    )


def trainings(cells: Cells) -> list[Claim]:
    """Whether it matters how the loss is minimised."""

    def at(k: object, training: str) -> Floats:
        return cells.at(k=k, training=training, measure="NDCG@10")

    found = [
        alike(f"{name}: descent and optimum, both chosen on validation data, are less than .03 "
              "apart at NDCG@10", at(k, "SGD"), at(k, CHOSEN), 0.03, whose="ours")
        for k, name in (("n", "ListMLE"), (1, "Top-1 ListMLE"), (3, "Top-3 ListMLE"), (10, BEST))
    ]  # fmt: skip
    for name in LETOR:
        text = f"{name} with parameters chosen on validation data is not below LETOR's means"
        found.append(_published(text, cells, name, training="chosen"))
    return found


def _published(text: str, cells: Cells, name: str, **labels: str) -> Claim:
    parts = [
        reaches(m, cells.one(method=name, measure=m, **labels).ours, bar, PUBLISHED)
        for m, bar in zip(MEASURES, LETOR[name], strict=True)
    ]
    return every(f"{text} by more than {PUBLISHED}", parts, whose="ours")


def drowned(cells: Cells) -> list[Claim]:
    """The simulation: full lists of equals drown the few that are not."""

    def at(name: str, share: float, training: str = "optimum") -> Floats:
        return cells.at(method=name, relevant=share, training=training, measure="NDCG@10")

    few, many = min(cells.names("relevant")), max(cells.names("relevant"))
    found = [
        greater(f"{top} is better than ListMLE at NDCG@10 where {few:.0%} are relevant",
                at(top, few), at("ListMLE", few), whose="ours")
        for top in TOPS
    ]  # fmt: skip
    gain = {share: at(BEST, share) - at("ListMLE", share) for share in (few, many)}
    found.append(greater(
        f"the gain of {BEST} is greater where {few:.0%} are relevant than where {many:.0%} are",
        gain[few], gain[many], whose="ours",
    ))  # fmt: skip
    share = "optimum, equal labels share"
    found.append(greater(
        f"equal labels that share their places help ListMLE ({few:.0%} relevant)",
        at("ListMLE", few, share), at("ListMLE", few), whose="ours",
    ))  # fmt: skip
    return found
