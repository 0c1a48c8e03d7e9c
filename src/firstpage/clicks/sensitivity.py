"""How many sessions an experiment needs, by simulation with a click model of one's own log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from firstpage.clicks.interleaving import interleave
from firstpage.clicks.models import ClickModel, click_model
from firstpage.clicks.sequences import win_sequence
from firstpage.clicks.sessions import Sessions
from firstpage.core import DataError, Floats, Progress, Table, Tabular, warn
from firstpage.data import Run

DEPTH = 10  # results per page
STREAMS = 400  # simulated experiments
LOOKS = np.unique(np.round(50 * 1.12 ** np.arange(110)).astype(np.int64))  # up to 10 million
FEW_KNOWN = 0.5


@dataclass(frozen=True)
class ExperimentPlan(Tabular):
    """The sessions that an experiment needs; `str(plan)` shows them in a terminal.

    Attributes
    ----------
    designs : tuple of dict
        For interleaving (team draft) and for an A/B test: fractions of sessions that are wins and
        losses of the second ranking; the sessions of a test with one look, and those until a
        confidence sequence decides.  None where no difference was seen in the simulation.
    click_rates : tuple of float
        The fraction of sessions with clicks for each ranking alone.
    sessions, alpha, power : int or float
        Simulated sessions per design; the level; the probability to find the difference.

    Examples
    --------
    >>> import firstpage as fp
    >>> sorted(fp.clicks.ExperimentPlan.__annotations__)
    ['alpha', 'click_rates', 'designs', 'power', 'sessions']
    """

    designs: tuple[dict[str, Any], ...]
    click_rates: tuple[float, float]
    sessions: int
    alpha: float
    power: float

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as JSON-serializable values, as `--json` prints them."""
        return vars(self) | {"designs": list(self.designs), "click_rates": list(self.click_rates)}

    def _frame_columns(self) -> Mapping[str, Any]:
        return {name: [row[name] for row in self.designs] for name in self.designs[0]}

    def summary_table(self) -> Table:
        """Return the sessions per design as a table."""
        rows = []
        for row in self.designs:
            needed = ("-" if row[n] is None else f"{row[n]:,}" for n in ("one_look", "all_looks"))
            rows.append([row["design"], f"{row['wins']:.2%}", f"{row['losses']:.2%}", *needed])
        head = ["design", "wins", "losses", "sessions, one look", "sessions, all looks"]
        return Table(head, rows)

    def __str__(self) -> str:
        first, second = self.click_rates
        lines = [
            f"With clicks: {first:.2%} of sessions by the first ranking, {second:.2%} by the second"
            f" ({self.sessions:,} simulated sessions).",
            f"Sessions to decide with probability {self.power:.0%} (level {self.alpha:.0%}):",
        ]
        if any(row["one_look"] is None for row in self.designs):
            lines.append(f"-: no difference in {self.sessions:,} simulated sessions.")
        return "\n".join([*lines, "", self.summary_table().text()])


def plan_experiment(
    sessions: Sessions,
    first: Run,
    second: Run,
    model: ClickModel | str = "PBM",
    *,
    n_sessions: int = 20_000,
    alpha: float = 0.05,
    power: float = 0.8,
    seed: int = 0,
    progress: Progress | None = None,
) -> ExperimentPlan:
    """Compute how many sessions it takes to decide between two rankings.

    People are simulated by a click model of the log: queries as frequent as in it, documents as
    attractive.  Documents that the log does not show have the mean attractiveness.

    Parameters
    ----------
    sessions : Sessions
        A log of clicks.
    first, second : Run
        The two rankings of queries of the log.
    model : ClickModel or str, default "PBM"
        The click model, which is fitted to the log.
    n_sessions : int, default 20000
        Simulated sessions, of one page each, per design.
    alpha : float, default 0.05
        The level of the two-sided test.
    power : float, default 0.8
        The probability to find the difference.
    seed : int, default 0
        The random seed.
    progress : callable, optional
        Called with the number of simulated lists and their total.

    Returns
    -------
    ExperimentPlan
        Sessions by interleaving and by an A/B test.

    Raises
    ------
    DataError
        If no query of the log is in both rankings.

    Examples
    --------
    >>> import firstpage as fp
    >>> first, second = {"q": {"a": 3, "b": 2, "c": 1}}, {"q": {"c": 3, "b": 2, "a": 1}}
    >>> log = fp.clicks.simulate(first, {"q": {"c": 4}}, n_sessions=2000, noise=2.0)
    >>> runs = fp.Run.from_dict(first), fp.Run.from_dict(second)
    >>> plan = fp.clicks.plan_experiment(log, *runs, n_sessions=2000)
    >>> plan.click_rates[1] > plan.click_rates[0]
    True
    """
    if n_sessions < 1 or not 0 < alpha < 1 or not 0 < power < 1:
        raise DataError("a plan needs sessions, and alpha and power between 0 and 1.")
    lists = _lists(sessions, first, second)
    fitted = (click_model(model) if isinstance(model, str) else model).fit(sessions)
    rng = np.random.default_rng(seed)
    pages = np.bincount(sessions.page_query, minlength=sessions.n_queries)[list(lists)]
    queries = np.array(list(lists))[rng.choice(len(lists), n_sessions, p=pages / pages.sum())]
    shown: list[Any] = []
    for number, query in enumerate(queries.tolist()):
        shown.append(interleave(lists[query], length=DEPTH, key=str(number), seed=seed))
        if progress is not None and number % 1000 == 999:
            progress(number + 1, n_sessions)
    names = [sessions.queries[query] for query in queries.tolist()]
    clicks = _clicks(fitted, names, [page.documents for page in shown], seed)
    credit = np.array([page.credit(c) for page, c in zip(shown, clicks, strict=True)])
    signs = np.sign(credit[:, 1] - credit[:, 0])
    rates = []
    for arm in (0, 1):
        documents = [lists[query][arm][:DEPTH] for query in queries.tolist()]
        clicked = _clicks(fitted, names, documents, seed + 1 + arm)
        rates.append(float(np.mean([row.any() for row in clicked])))
    outcomes = {
        "interleaving": (float((signs > 0).mean()), float((signs < 0).mean())),
        "A/B": (rates[1] / 2, rates[0] / 2),
    }
    designs = []
    for design, (wins, losses) in outcomes.items():
        one, all_looks = _needed(wins, losses, n_sessions, alpha, power, rng)
        if design == "A/B" and one is not None:
            one = _two_rates(rates[0], rates[1], alpha, power)
        row = {"design": design, "wins": wins, "losses": losses}
        designs.append(row | {"one_look": one, "all_looks": all_looks})
    return ExperimentPlan(tuple(designs), (rates[0], rates[1]), n_sessions, alpha, power)


def _lists(sessions: Sessions, first: Run, second: Run) -> dict[int, list[list[str]]]:
    """Return both rankings of each query of the log, by its number."""
    runs = [run.to_dict() for run in (first, second)]
    lists = {
        number: [_ranked(run[name]) for run in runs]
        for number, name in enumerate(sessions.queries)
        if all(run.get(name) for run in runs) and (sessions.page_query == number).any()
    }
    if not lists:
        raise DataError(f"{sessions.source}: no query of the log is in both rankings.")
    pairs = sessions.pairs
    known = {
        (query, sessions.documents[document])
        for query, document in zip(pairs.query.tolist(), pairs.document.tolist(), strict=True)
    }
    there = [(q, d) in known for q, both in lists.items() for row in both for d in row[:DEPTH]]
    if np.mean(there) < FEW_KNOWN:
        warn(
            f"the log shows only {np.mean(there):.0%} of the first {DEPTH} documents of the "
            "rankings; the others count as attractive as the mean."
        )
    return lists


def _ranked(scores: Mapping[str, float]) -> list[str]:
    """Return documents by descending score."""
    return sorted(scores, key=lambda document: (-scores[document], document))


def _clicks(model: ClickModel, queries: list[str], lists: Any, seed: int) -> list[Floats]:
    """Return simulated clicks per page of documents."""
    sizes = [len(row) for row in lists]
    pages = Sessions.from_arrays(
        query=np.repeat(queries, sizes),
        document=[d for row in lists for d in row],
        page=np.repeat(np.arange(len(lists)), sizes),
        clicked=np.zeros(sum(sizes)),
    )
    clicked = model.simulate(pages, seed).clicked.astype(np.float64)
    return np.split(clicked, pages.offsets[1:-1])


def _two_rates(first: float, second: float, alpha: float, power: float) -> int:
    """Return the sessions of both arms by the two-sided z-test of two proportions."""
    from scipy.special import ndtri

    mean = (first + second) / 2
    root = ndtri(1 - alpha / 2) * np.sqrt(2 * mean * (1 - mean))
    root += ndtri(power) * np.sqrt(first * (1 - first) + second * (1 - second))
    return 2 * int(np.ceil((root / (second - first)) ** 2))


def _needed(
    wins: float, losses: float, simulated: int, alpha: float, power: float, rng: Any
) -> tuple[int | None, int | None]:
    """Return the sessions of a sign test with one look, and of a confidence sequence."""
    from scipy.special import ndtri

    decided = wins + losses
    p = wins / decided if decided else 0.5
    if abs(p - 0.5) < 2 * np.sqrt(0.25 / max(decided * simulated, 1)):
        return None, None
    root = ndtri(1 - alpha / 2) / 2 + ndtri(power) * np.sqrt(p * (1 - p))
    one = int(np.ceil((root / (p - 0.5)) ** 2 / decided))
    steps = np.diff(LOOKS, prepend=0)
    counts = rng.multinomial(np.tile(steps, (STREAMS, 1)), [wins, losses, 1 - decided])
    counts = np.cumsum(counts, axis=1)
    low, high = win_sequence(counts[..., 0].ravel(), counts[..., 1].ravel(), alpha)
    over = ((low > 0.5) | (high < 0.5)).reshape(STREAMS, -1)
    stopped = np.where(over.any(axis=1), LOOKS[over.argmax(axis=1)], np.inf)
    needed = float(np.quantile(stopped, power, method="higher"))
    return one, int(needed) if np.isfinite(needed) else None
