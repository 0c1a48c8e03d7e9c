"""Analysis of experiments: which ranking people prefer, valid at all looks, and its checks."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

import numpy as np

from firstpage.clicks.interleaving import credit_of
from firstpage.clicks.sequences import mean_sequence, ratio_mismatch, win_sequence
from firstpage.clicks.sessions import Sessions
from firstpage.core import Array, Bools, DataError, Floats, Ints, Table, Tabular, curves

DAY = 86_400_000  # milliseconds
CLOCK_TOLERANCE = 60.0  # seconds by which times of a log may go back
MANY_PAGES = 100  # of one visitor, as bots have
SUSPECT = 0.01  # p-value of a check
BY_ARM = ("ab", "team-draft")  # methods that tell the ranking of each result
BY_WINS = (*BY_ARM, "balanced")  # whose wins are as probable as losses without a difference


@dataclass(frozen=True)
class ExperimentAnalysis(Tabular):
    """Which ranking people prefer; `str(analysis)` shows it in a terminal.

    Data frames have one row per day and ranking that is compared with the first one.

    Attributes
    ----------
    name, digest, method, source : str
        The experiment and the log.
    arms : tuple of str
        The rankings; the others are compared with the first one.
    alpha : float
        Probability that any interval, at any look, does not contain the truth.
    counts : dict of str to int
        Pages, comparisons (a visitor's query; in A/B tests a visitor), visitors and clicks.
    comparisons : tuple of dict
        Per ranking: credit, wins, losses, ties, the estimate with its interval, its value without
        a difference (`null`), wins and losses by query and by visitor, and the winner, or None.
        The estimate is the probability to win, or for optimized, probabilistic and pairwise
        interleaving, whose wins are not fair but whose credit is, the mean difference of credit.
    days : tuple of dict
        Per day and ranking: wins and losses so far, the estimate and its interval.
    segments : tuple of dict
        Per segment and ranking: wins, losses, the estimate and its interval.
    checks : dict of str to dict
        Per check: what was found (`text`), and whether it is suspect.

    Examples
    --------
    >>> import firstpage as fp
    >>> sorted(fp.clicks.ExperimentAnalysis.__annotations__)[:3]
    ['alpha', 'arms', 'checks']
    """

    name: str
    digest: str
    method: str
    source: str
    arms: tuple[str, ...]
    alpha: float
    counts: dict[str, int]
    comparisons: tuple[dict[str, Any], ...]
    days: tuple[dict[str, Any], ...]
    segments: tuple[dict[str, Any], ...]
    checks: dict[str, dict[str, Any]]

    @property
    def sentence(self) -> str:
        """The result in one sentence per ranking."""
        unit = "visitors who clicked" if self.method == "ab" else "comparisons that differ"
        texts = []
        for row in self.comparisons:
            verb = {None: "is not decided against", row["arm"]: "wins against"}
            decided = row["wins"] + row["losses"]
            shown = f"it has {row['estimate']:.1%} of the {decided:,} {unit}"
            if self.method not in BY_WINS:
                shown = f"its credit is higher by {row['estimate']:.3f} per comparison"
            elif not decided:
                shown = f"there are no {unit} yet"
            texts.append(
                f"{row['arm']} {verb.get(row['winner'], 'loses against')} {self.arms[0]}: {shown} "
                f"({1 - self.alpha:.0%} interval at all looks: {row['low']:.3f} to "
                f"{row['high']:.3f}; {row['null']:g} is no difference)."
            )
        return " ".join(texts)

    def to_dict(self) -> dict[str, Any]:
        """Return the analysis as JSON-serializable values, as `--json` prints them."""
        values = {name: list(v) if isinstance(v, tuple) else v for name, v in vars(self).items()}
        return values | {"sentence": self.sentence}

    def _frame_columns(self) -> Mapping[str, Any]:
        return {name: [row[name] for row in self.days] for name in self.days[0]}

    def summary_table(self) -> Table:
        """Return credit, wins, losses and ties per ranking as a table."""
        head = ["ranking", "unit", "wins", "losses", "ties", "wins of decided"]
        rows = []
        for row in self.comparisons:
            units = {"comparison": row, **row["by"]}
            for unit, c in units.items():
                rate = f"{c['wins'] / max(c['wins'] + c['losses'], 1):.4f}"
                counts = [f"{c[name]:,}" for name in ("wins", "losses", "ties")]
                rows.append([row["arm"], unit, *counts, rate])
        return Table(head, rows)

    def segment_table(self) -> Table:
        """Return wins and losses per segment as a table."""
        form = "{wins:,} {losses:,} {estimate:.4f} [{low:.4f}, {high:.4f}]"
        rows = [
            [row["segment"], row["arm"], *form.format(**row).split(" ", 3)] for row in self.segments
        ]
        head = ["segment", "ranking", "wins", "losses", "estimate", f"{1 - self.alpha:.0%}"]
        return Table(head, rows)

    def drawing(self) -> str:
        """Return the estimate by day, with its interval at all looks, as an SVG drawing."""
        lines, bands = defaultdict(list), defaultdict(list)
        for row in self.days:
            lines[row["arm"]].append((row["day"], row["estimate"]))
            bands[row["arm"]].append((row["low"], row["high"]))
        days = [row["day"] for row in self.days]
        null = self.comparisons[0]["null"]
        lines["no difference"] = [(min(days), null), (max(days), null)]
        name = "probability to win" if self.method in BY_WINS else "difference of credit"
        return curves(lines, f"{name} by day", "day", name, bands=bands, dashed=["no difference"])

    def __str__(self) -> str:
        checks = [row["text"] for row in self.checks.values()]
        counts = ", ".join(f"{count:,} {name}" for name, count in self.counts.items())
        head = f"{self.source}: {self.name} ({self.method}, {self.digest}): {counts}"
        tables = [self.summary_table().text(), "", self.segment_table().text()]
        return "\n".join([head, "", self.sentence, "", *tables, "", *checks])


def analyze(
    sessions: Sessions,
    experiment: str | None = None,
    digest: str | None = None,
    value: Literal["clicks", "values"] = "clicks",
    segments: Mapping[str, str] | None = None,
    alpha: float = 0.05,
) -> ExperimentAnalysis:
    """Analyze an experiment: which ranking people prefer, at any look.

    Interleaved lists are compared by the credit of their clicks, once per visitor and query; in A/B
    tests, visitors who clicked in their first session are wins of the ranking that they saw.

    Parameters
    ----------
    sessions : Sessions
        A log with an experiment, such as of `firstpage serve`.
    experiment, digest : str, optional
        The experiment and the digest of its rankings, if the log has several.
    value : {"clicks", "values"}, default "clicks"
        Whether a result counts when it was clicked, or by the value of the best action on it.
    segments : mapping of str to str, optional
        The segment of each query; by default frequent queries, with half of the pages, and rare
        ones.
    alpha : float, default 0.05
        Probability that any interval, at any look, does not contain the truth; it is divided among
        the rankings.

    Returns
    -------
    ExperimentAnalysis
        Wins, losses and ties, intervals over time and by segment, and checks.

    Raises
    ------
    DataError
        If the log has no experiment, or several of which none was chosen.

    Examples
    --------
    >>> import firstpage as fp
    >>> sessions = fp.Sessions.from_arrays(query=["q"], document=["a"], rank=[1], clicked=[1])
    >>> fp.clicks.analyze(sessions)
    Traceback (most recent call last):
    ...
    firstpage.core.errors.DataError: sessions: has no pages of an experiment.
    """
    if not 0 < alpha < 1 or value not in ("clicks", "values"):
        raise DataError("an analysis needs alpha between 0 and 1, and clicks or values.")
    pages, records, backward = _chosen(sessions, experiment, digest)
    log = sessions.select(pages)
    record = records[0]
    if value == "values" and log.value is None:
        raise DataError(f"{log.source}: has no values of actions.")
    values = np.asarray(log.clicked if value == "clicks" else log.value, np.float64)
    bound = _bound(records, float(values.max(initial=0.0)))
    units = _Units(log, record, _credit(log, record, records, values), bound)
    level = alpha / (len(units.names) - 1)
    rows = [units.comparison(arm, level) for arm in range(1, len(units.names))]
    counts = {
        "pages": log.n_pages, "comparisons": len(units.credit),
        "visitors": len(np.unique(units.visitor)), "clicks": int(log.clicks.sum()),
    }  # fmt: skip
    return ExperimentAnalysis(
        str(record["experiment"]), str(record.get("digest", "")), str(record["method"]),
        sessions.source, tuple(units.names), alpha, counts, tuple(rows), tuple(units.by_day(level)),
        tuple(units.by_segment(level, segments)), _checks(log, units, backward),
    )  # fmt: skip


def _chosen(
    sessions: Sessions, name: str | None, digest: str | None
) -> tuple[Ints, list[dict[str, Any]], float]:
    """Return the pages of one experiment with one digest, and what the log tells of each.

    The third value is by how many seconds times go backward in the log at most.
    """
    table: list[dict[str, Any]] = [json.loads(text) for text in sessions.experiments]
    code = sessions.experiment
    pages = np.flatnonzero(code >= 0) if code is not None else np.empty(0, np.int64)
    if code is None or not len(pages):
        raise DataError(f"{sessions.source}: has no pages of an experiment.")
    for key, wanted in (("experiment", name), ("digest", digest)):
        present = sorted({str(table[n].get(key, "")) for n in set(code[pages].tolist())})
        if wanted is None and len(present) > 1:
            why = "" if key == "experiment" else " (the rankings changed; they are not pooled)"
            raise DataError(
                f"{sessions.source}: has several of {key}{why}: {', '.join(present)}; choose one."
            )
        chosen = present[0] if wanted is None else wanted
        matching = np.array([str(row.get(key, "")) == chosen for row in table])
        pages = pages[matching[code[pages]]]
        if not len(pages):
            raise DataError(
                f"{sessions.source}: has no {key} {chosen!r}; there are {', '.join(present)}."
            )
    backward = 0.0
    if sessions.time is not None:
        time = sessions.time[pages]
        backward = float((np.maximum.accumulate(time) - time)[time >= 0].max(initial=0)) / 1000
        pages = pages[np.argsort(sessions.time[pages], kind="stable")]
    records = [table[n] for n in code[pages].tolist()]
    if len({(row.get("method"), str(row["arms"])) for row in records}) > 1:
        raise DataError(f"{sessions.source}: pages of one digest differ in method or arms.")
    if len(records[0]["arms"]) < 2 or "method" not in records[0]:
        raise DataError(f"{sessions.source}: an experiment has a method and two or more arms.")
    return pages, records, backward


def _credit(log: Sessions, record: Mapping[str, Any], records: Any, worth: Floats) -> Floats:
    """Return the credit of each ranking for the clicks on each page."""
    arms = [str(arm) for arm in record["arms"]]
    credit = np.zeros((log.n_pages, len(arms)))
    if record["method"] in BY_ARM:
        arm = _arms(log, arms, np.arange(log.n_impressions))
        known = arm >= 0
        np.add.at(credit, (log.page[known], arm[known]), worth[known])
        return credit
    for page in np.unique(log.page[worth > 0]).tolist():
        part = slice(log.offsets[page], log.offsets[page + 1])
        credit[page] = credit_of(records[page], worth[part], len(arms))
    return credit


def _bound(records: list[dict[str, Any]], worth: float) -> float:
    """Return the largest possible difference of credit on a page."""
    method = records[0]["method"]
    if method == "pairwise":
        return worth * max(float(np.sum(row.get("weights", 0))) for row in records)
    documents = max(len(row.get("teams", ())) for row in records)
    per_rank = np.arange(1, documents + 1) ** (-1.0 if method == "optimized" else 0.0)
    return max(worth, 1.0) * max(float(per_rank.sum()), 1.0)


class _Units:
    """Comparisons in the order of time: a visitor's query, or in A/B tests a visitor."""

    def __init__(
        self, log: Sessions, record: Mapping[str, Any], credit: Floats, bound: float
    ) -> None:
        self.log, self.ab, self.bound = log, record["method"] == "ab", bound
        self.by_wins = record["method"] in BY_WINS
        session = log.session.astype(np.int64)
        user = np.full(log.n_pages, -1) if log.user is None else log.user
        visitor = np.where(user >= 0, user, len(log.users) + session)
        shares = (self.ab and record.get("shares")) or np.ones(len(record["arms"]))
        self.shares = np.asarray(shares, np.float64) / np.sum(shares)
        used = np.ones(log.n_pages, bool)
        key = visitor * max(log.n_queries, 1) + log.page_query
        if self.ab:  # later sessions would change what was counted at an earlier look
            _, first, number = np.unique(visitor, return_index=True, return_inverse=True)
            used, key = session == session[first][number], visitor
        elif not self.by_wins:  # bounded credit: of the first page
            used = np.isin(np.arange(log.n_pages), np.unique(key, return_index=True)[1])
        self.names = [str(arm) for arm in record["arms"]]
        _, first, number = np.unique(key[used], return_index=True, return_inverse=True)
        order = np.argsort(first)
        sums = np.zeros((len(first), credit.shape[1]))
        np.add.at(sums, number, credit[used])
        self.page = np.flatnonzero(used)[first[order]]
        self.credit, self.visitor = sums[order], visitor[self.page]
        self.arm_of_page, self.all_visitors = _arms(log, self.names, log.offsets[:-1]), visitor
        self.arm = self.arm_of_page[self.page]
        time = np.full(log.n_pages, -1) if log.time is None else log.time
        self.day = time[self.page] // DAY

    def signs(self, arm: int) -> Array:
        """Return 1, 0 and -1 for wins, ties and losses of a ranking against the first one."""
        return np.sign(np.round(self.credit[:, arm] - self.credit[:, 0], 12))

    def null(self, arm: int) -> float:
        """Return the probability to win of a ranking that does not differ."""
        share = self.shares[arm] / (self.shares[arm] + self.shares[0])
        return float(share) if self.ab else 0.5 * self.by_wins

    def row(self, arm: int, chosen: Any, level: float) -> dict[str, Any]:
        """Return wins and losses of some comparisons, and the interval."""
        signs = self.signs(arm)[chosen]
        wins, losses = int((signs > 0).sum()), int((signs < 0).sum())
        if self.by_wins:
            estimate = wins / max(wins + losses, 1)
            low, high = win_sequence([wins], [losses], level)
        else:
            difference = (self.credit[:, arm] - self.credit[:, 0])[chosen]
            estimate = float(difference.mean())
            low, high = mean_sequence(difference, -self.bound, self.bound, level)
        return {
            "arm": self.names[arm], "wins": wins, "losses": losses, "estimate": estimate,
            "low": float(low[-1]), "high": float(high[-1]),
        }  # fmt: skip

    def comparison(self, arm: int, level: float) -> dict[str, Any]:
        """Return all that is told of one ranking against the first one."""
        row = self.row(arm, slice(None), level)
        null, signs, names = self.null(arm), self.signs(arm), self.names
        winner = names[arm] if row["low"] > null else names[0] if row["high"] < null else None
        by, keys = {}, {"query": self.log.page_query[self.page], "visitor": self.visitor}
        for name, key in keys.items():
            sums = np.sign(np.bincount(np.unique(key, return_inverse=True)[1], signs))
            outcomes = zip(("wins", "losses", "ties"), (1, -1, 0), strict=True)
            by[name] = {outcome: int((sums == sign).sum()) for outcome, sign in outcomes}
        return row | {
            "ties": int((signs == 0).sum()), "null": null, "winner": winner,
            "credit": float(self.credit[:, arm].sum()), "of_first": float(self.credit[:, 0].sum()),
            "by": by,
        }  # fmt: skip

    def by_day(self, level: float) -> list[dict[str, Any]]:
        """Return wins, losses and the interval until the end of each day."""
        rows = []
        for day in np.unique(self.day).tolist():
            date = "" if day < 0 else datetime.fromtimestamp(day * DAY / 1000, UTC).date()
            number = int(day - self.day.min()) + 1
            rows += [
                {"date": str(date), "day": number, **self.row(arm, self.day <= day, level)}
                for arm in range(1, len(self.names))
            ]
        return rows

    def by_segment(self, level: float, segments: Mapping[str, str] | None) -> list[dict[str, Any]]:
        """Return wins, losses and the interval per segment of queries."""
        query = self.log.page_query[self.page]
        if segments is None:
            pages = np.bincount(self.log.page_query, minlength=self.log.n_queries)
            order = np.argsort(-pages, kind="stable")
            before = np.cumsum(pages[order]) - pages[order]
            frequent = np.zeros(len(pages), bool)
            frequent[order] = before < pages.sum() / 2
            names = np.where(frequent, "frequent queries", "rare queries")
        else:
            names = np.array([segments.get(name, "others") for name in self.log.queries])
        return [
            {"segment": str(name), **self.row(arm, names[query] == name, level)}
            for name in np.unique(names[query])
            for arm in range(1, len(self.names))
        ]


def _arms(log: Sessions, names: Sequence[str], rows: Ints) -> Ints:
    """Return the ranking of some impressions; -1 where the log does not tell it."""
    place = {name: n for n, name in enumerate(names)}
    code = np.array([*(place.get(name, -1) for name in log.arms), -1], np.int64)
    return code[-1 if log.arm is None else log.arm[rows]] + np.zeros(len(rows), np.int64)


def _checks(log: Sessions, units: _Units, backward: float) -> dict[str, dict[str, Any]]:
    """Return what may be wrong with the experiment."""
    checks: dict[str, dict[str, Any]] = {}
    drawn, names = units.arm >= 0, units.names
    if drawn.any():
        inside = [(units.day <= day) & drawn for day in np.unique(units.day[drawn])]
        counts = np.array([np.bincount(units.arm[rows], minlength=len(names)) for rows in inside])
        p = float(ratio_mismatch(counts, units.shares)[-1])
        unit = "visitors" if units.ab else "first results"
        told = ", ".join(f"{name} {count:,}" for name, count in zip(names, counts[-1], strict=True))
        text = f"Sample ratio: {unit} are {told}; p at all looks {p:.3g}."
        checks["sample_ratio"] = _check(text, p < SUSPECT, p=p)
    if units.ab:
        seen = np.unique(np.stack([units.all_visitors, units.arm_of_page], axis=1), axis=0)
        several = int((np.bincount(np.unique(seen[:, 0], return_inverse=True)[1]) > 1).sum())
        text = f"Carry-over: {several:,} visitors saw several rankings."
        checks["carry_over"] = _check(text, several > 0, visitors=several)
    else:
        checks["carry_over"] = _carried(units)
    pages = np.bincount(np.unique(units.all_visitors, return_inverse=True)[1])
    busy = np.unique(units.all_visitors)[pages > MANY_PAGES]
    human: Bools = ~np.isin(units.visitor, busy)
    won, decided = units.signs(1)[human] > 0, units.signs(1)[human] != 0
    text = (
        f"Bots: {len(busy):,} visitors have more than {MANY_PAGES} pages; without them {names[1]} "
        f"has {won.sum() / max(decided.sum(), 1):.1%} of {decided.sum():,}."
    )
    checks["bots"] = _check(text, len(busy) > 0, visitors=len(busy))
    if log.n_pages and not units.ab and units.by_wins and not drawn.any():
        text = "Balanced interleaving may prefer a ranking although clicks are random."
        checks["balanced"] = _check(text, True)
    if backward > CLOCK_TOLERANCE:
        text = (
            f"Clock: times go back by {backward:,.0f} seconds in the log, by a clock that was set "
            "back or by files in another order. Days, and first sessions, are by these times."
        )
        checks["clock"] = _check(text, True)
    return checks


def _carried(units: _Units) -> dict[str, Any]:
    """Return whether wins are as frequent in a visitor's first comparison as in later ones."""
    later = np.ones(len(units.visitor), np.int64)
    later[np.unique(units.visitor, return_index=True)[1]] = 0
    signs = units.signs(1)
    sizes = np.bincount(later[signs != 0], minlength=2).astype(np.float64)
    if sizes.min() == 0:
        return _check("Carry-over: no visitor has several comparisons.", False)
    rates = np.bincount(later[signs > 0], minlength=2) / sizes
    pooled = float(rates @ sizes / sizes.sum())
    error = float(np.sqrt(max(pooled * (1 - pooled), 1e-12) * (1 / sizes).sum()))
    z = float(rates[0] - rates[1]) / error
    text = (
        f"Carry-over: {units.names[1]} wins {rates[0]:.1%} of first and {rates[1]:.1%} of later "
        f"comparisons of visitors (z = {z:.1f})."
    )
    return _check(text, abs(z) > 2.58, z=z)


def _check(text: str, suspect: bool, **values: Any) -> dict[str, Any]:
    """Return a check, which says itself that it is suspect."""
    return {"text": text + (" This is suspect." if suspect else ""), "suspect": suspect, **values}
