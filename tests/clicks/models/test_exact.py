"""Probabilities of click models equal sums over all click patterns of short pages."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import firstpage as fp
from firstpage.clicks.models import MODELS
from firstpage.clicks.models.base import ClickModel
from firstpage.clicks.models.chains import ChainModel
from tests.clicks.models.pages import patterns, random_pages

NAMES = sorted(MODELS)
PAGES = [(["d1", "d0", "new", "d3"], [1, 2, 3, 4]), (["d2", "d0", "d6", "d5"], [2, 3, 5, 6])]
TRAIN = random_pages(300)


def fitted(name: str) -> ClickModel:
    return fp.clicks.click_model(name).fit(TRAIN)


def of_query_q0(documents: list[str], ranks: list[int]) -> fp.Sessions:
    s = patterns(documents, ranks)
    return fp.clicks.concatenate(
        fp.Sessions.from_arrays(
            query=["q0"] * s.n_impressions,
            document=[s.documents[d] for d in s.document],
            rank=s.rank,
            clicked=s.clicks,
            page=s.page,
        )
    )


def chain_probability(
    a: Sequence[float], skip: float, after: Sequence[float], clicks: Sequence[int], seen: bool
) -> float:
    """Return the probability of clicks by the story of the model: examine, click, go on or end."""
    if not clicks:
        return 1.0
    if not seen:
        return float(not any(clicks))
    probability, go = (a[0], after[0]) if clicks[0] else (1 - a[0], skip)
    rest = (
        chain_probability(a[1:], skip, after[1:], clicks[1:], further) for further in (True, False)
    )
    return probability * sum(p * q for p, q in zip((go, 1 - go), rest, strict=True))


def value(model: ClickModel, document: str, family: str = "attractiveness_") -> float:
    table = getattr(model, family)
    rows = [
        v
        for q, d, v in zip(table.query, table.document, table.value, strict=True)
        if (table.queries[q], table.documents[d]) == ("q0", document)
    ]
    return float(rows[0]) if rows else table.prior[0] / (table.prior[0] + table.prior[1])


def story(model: Any, documents: list[str], ranks: list[int], clicks: tuple[int, ...]) -> float:
    """Return the probability of clicks by the definition of each model."""
    name = type(model).__name__
    ctr = name in ("GlobalCTR", "RankCTR")
    a = [1.0 if ctr else value(model, d) for d in documents]
    if isinstance(model, ChainModel):
        s = [value(model, d, "satisfaction_") if "DBN" in name else 0.0 for d in documents]
        gamma: Any = getattr(model, "continuation_", None)
        skip, after = {
            "Cascade": lambda: (1.0, [0.0] * len(a)),
            "DCM": lambda: (1.0, [gamma[r - 1] for r in ranks]),
            "SimplifiedDBN": lambda: (1.0, [1 - x for x in s]),
            "DBN": lambda: (gamma, [gamma * (1 - x) for x in s]),
            "CCM": lambda: (gamma[0], [gamma[1] * (1 - x) + gamma[2] * x for x in a]),
        }[name]()
        return chain_probability(a, skip, after, clicks, True)
    e = model.parameters_["examination"]
    last, product = 0, 1.0
    for x, rank, click in zip(a, ranks, clicks, strict=True):
        if name == "UBM":
            x *= model.examination_[rank - 1, last]
        elif name != "DocumentCTR":
            x *= e[0 if name == "GlobalCTR" else rank]
        product *= x if click else 1 - x
        last = rank if click else last
    return float(product)


@pytest.mark.parametrize(("documents", "ranks"), PAGES, ids=["from rank 1", "ranks with gaps"])
@pytest.mark.parametrize("name", NAMES)
def test_all_patterns(name: str, documents: list[str], ranks: list[int]) -> None:
    model, pages = fitted(name), of_query_q0(documents, ranks)
    n = len(documents)
    clicks = np.array(list(itertools.product([0, 1], repeat=n)))
    expected = np.array([story(model, documents, ranks, tuple(row)) for row in clicks.tolist()])
    assert expected.sum() == pytest.approx(1)
    found = np.exp(model.log_likelihood(pages).reshape(-1, n).sum(axis=1))
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-8)
    marginal = model.click_probabilities(pages).reshape(-1, n)
    np.testing.assert_allclose(marginal, np.tile(expected @ clicks, (2**n, 1)), rtol=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_the_fit_reports_the_likelihood_of_its_pages(name: str) -> None:
    model = fitted(name)
    pages = TRAIN
    if name == "Cascade":  # reads no clicks below the first one
        first = [i for i in range(TRAIN.n_pages) if TRAIN.clicks[6 * i : 6 * i + 6].sum() < 2]
        pages = TRAIN.select(first)
        model.fit(pages)
    total = model.log_likelihood(pages).sum()
    assert model.log_likelihood_ == pytest.approx(total, rel=1e-9)


def test_examination_is_that_of_the_chain() -> None:
    model = fitted("Cascade")
    pages = of_query_q0(["d1", "d0", "d3"], [1, 2, 3])
    a = [value(model, d) for d in ("d1", "d0", "d3")]
    expected = [1, 1 - a[0], (1 - a[0]) * (1 - a[1])]
    assert model.examination_probabilities(pages)[:3].tolist() == pytest.approx(expected)
