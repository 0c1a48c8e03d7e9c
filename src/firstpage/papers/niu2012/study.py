"""The study of Niu et al. (2012): all entries, and Figures 1 and 2 on the effect of beta."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from firstpage.core import Floats
from firstpage.papers.niu2012 import comparison, edges, labeling_tables
from firstpage.papers.niu2012.comparison import FAMILIES, letor_experiments, study_experiments
from firstpage.papers.niu2012.learned import CURVE_MEASURES
from firstpage.papers.study.claims import all_hold, greater
from firstpage.papers.study.descriptions import Descriptions
from firstpage.papers.study.letor_protocol import MODULES
from firstpage.papers.study.study import (
    Cells,
    Claim,
    ClaimVerdict,
    Experiment,
    PaperEntry,
    PaperStudy,
    Plot,
)

SMALL_VARIATION = 0.1
MEASURES = [(truth, m) for truth, measures in CURVE_MEASURES.items() for m in measures]


def _claims(cells: Cells) -> list[Claim]:
    claims = []
    for model in FAMILIES:
        claims += [
            _maximum_inside(cells, model),
            _rises_and_falls(cells, model),
            _small_variation(cells, model),
        ]
    return [*claims, *(_small_variation_inside(cells, model) for model in FAMILIES)]


def beta_curve(cells: Cells, model: str, measure: str) -> dict[float, Floats]:
    """Return the values per query by beta."""
    selected = [c for c in cells if c.labels["model"] == model and c.labels["measure"] == measure]
    return {c.labels["beta"]: c.samples for c in selected}


def _means(cells: Cells, model: str, measure: str) -> dict[float, float]:
    return {beta: float(v.mean()) for beta, v in beta_curve(cells, model, measure).items()}


def _maximum_inside(cells: Cells, model: str) -> Claim:
    """Return the claim that the largest mean is between beta = 0 and 1."""
    best_betas, at_end = [], False
    for _, measure in MEASURES:
        means = _means(cells, model, measure)
        best = max(means, key=lambda beta: means[beta])
        best_betas.append(f"{measure} {best:g}")
        at_end = at_end or best in (min(means), max(means))
    verdict: ClaimVerdict = "does not hold" if at_end else "holds"
    text = f"{model}: the largest mean is between beta = 0 and 1, not at an end"
    return Claim(text, verdict, "at " + ", ".join(best_betas))


def _rises_and_falls(cells: Cells, model: str) -> Claim:
    """Return the claim that kNDCG@10 and kERR rise and then fall with beta."""
    claims = []
    for measure in CURVE_MEASURES["top-k"][1:]:
        values = beta_curve(cells, model, measure)
        best = cross_fitted_best(values)
        claims += [
            greater(f"{measure} against beta = {end:g}", best, values[end])
            for end in (min(values), max(values))
        ]
    return all_hold(f"{model}: it first grows, then falls (top-k labels)", claims)


def cross_fitted_best(values: dict[float, Floats]) -> Floats:
    """Return the value per query at the beta that is best for the other half of the queries."""
    table = np.array(list(values.values()))
    even = np.arange(table.shape[1]) % 2 == 0
    best_values = np.empty(table.shape[1])
    for half in (even, ~even):
        best_values[half] = table[int(np.argmax(table[:, ~half].mean(axis=1)))][half]
    return best_values


def variation(means: dict[float, float]) -> float:
    """Return (maximum - minimum) / mean."""
    values = np.array(list(means.values()))
    return float((values.max() - values.min()) / values.mean())


def _small_variation(cells: Cells, model: str) -> Claim:
    """Return the claim that the variation is small."""
    variations = {m: variation(_means(cells, model, m)) for _, m in MEASURES}
    text = f"{model}: the variation is small (below {SMALL_VARIATION:.0%})"
    return _all_below(text, variations)


def _small_variation_inside(cells: Cells, model: str) -> Claim:
    """Return the same claim without the ends, where one of the two losses is missing."""
    variations = {}
    for _, m in MEASURES:
        means = _means(cells, model, m)
        ends = (min(means), max(means))
        variations[m] = variation({b: v for b, v in means.items() if b not in ends})
    text = f"{model}: the variation is below {SMALL_VARIATION:.0%} without the ends"
    return _all_below(text, variations, source="ours")


def _all_below(text: str, variations: dict[str, float], **source: Any) -> Claim:
    holds = max(variations.values()) < SMALL_VARIATION
    listed = ", ".join(f"{m} {100 * v:.1f} %" for m, v in variations.items())
    return Claim(text, "holds" if holds else "does not hold", listed, **source)


DESCRIBED = Descriptions(__file__, THINNED=comparison.DESCRIBED.texts["THINNED"])


def _figure(key: str, make: Callable[..., list[Experiment]]) -> PaperEntry:
    def focused(**options: Any) -> list[Experiment]:
        return [e for e in make(**options) if e.params["model"] in FAMILIES]

    return DESCRIBED.entry(
        key,
        focused(),
        _claims,
        row_filter=lambda row: "beta" in row,
        paper_experiments=focused(printed=True),
        fields={"plots": [(model, Plot("measure", "beta", model)) for model in FAMILIES]},
    )


OWN_MODULES = ("labeling", "learned", "printed", "edges")
LABELING_MODULES = ("assessors", "belief", "session", "simulation", "statistics", "strategies")
ENTRIES = (
    *labeling_tables.entries(),
    *comparison.entries(),
    _figure("figure1", letor_experiments),
    _figure("figure2", study_experiments),
    edges.edges(),
)

NIU2012 = PaperStudy(
    "niu2012",
    "Niu, Guo, Lan, Cheng: Top-k Learning to Rank: Labeling, Ranking and Evaluation (SIGIR 2012)",
    {entry.name: entry for entry in ENTRIES},
    (
        *MODULES,
        *(f"firstpage.labeling.{name}" for name in LABELING_MODULES),
        *(f"firstpage.papers.niu2012.{name}" for name in OWN_MODULES),
    ),
)
