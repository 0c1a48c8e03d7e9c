"""Simulated logs with known attractiveness, and a click model that knows it."""

from __future__ import annotations

from typing import Any

import numpy as np

import firstpage as fp

EXAMINED = np.array([0.9, 0.6, 0.45, 0.3, 0.2])


def position_log(pages: int, queries: int = 12, documents: int = 9, seed: int = 0):
    """Return a log of a position-based model, the rates of its pairs and those of examination."""
    rng = np.random.default_rng(seed)
    rates = rng.beta(1.2, 3.0, (queries, documents))
    traffic = 1 / np.arange(1, queries + 1)
    query = rng.choice(queries, pages, p=traffic / traffic.sum())
    shown = rng.random((pages, documents)).argsort(axis=1)[:, : len(EXAMINED)]
    clicked = rng.random(shown.shape) < EXAMINED * rates[query[:, None], shown]
    log = fp.Sessions.from_arrays(
        query=[f"q{q}" for q in np.repeat(query, len(EXAMINED))],
        document=[f"d{d}" for d in shown.ravel()],
        rank=np.tile(np.arange(1, len(EXAMINED) + 1), pages),
        clicked=clicked.ravel(),
        page=np.repeat(np.arange(pages), len(EXAMINED)),
    )
    return log, rates


class KnownModel(fp.clicks.ClickModel):
    """A position-based model with given rates."""

    def __init__(self, rates: np.ndarray, examined: np.ndarray = EXAMINED) -> None:
        super().__init__()
        self.rates, self.examined = rates, examined
        self.attractiveness_: Any = self
        self.parameters_ = {}

    def values_of(self, sessions: fp.Sessions, family: str = "attractiveness") -> np.ndarray:
        query = [int(sessions.queries[q][1:]) for q in sessions.page_query[sessions.page]]
        document = [int(sessions.documents[d][1:]) for d in sessions.document]
        return self.rates[query, document]

    def _probabilities(self, sessions: fp.Sessions, observed: bool) -> np.ndarray:
        return self.examined[sessions.rank - 1] * self.values_of(sessions)
