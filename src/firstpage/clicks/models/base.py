"""What all click models share: parameters, fits, probabilities, simulation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Self

import numpy as np

from firstpage.clicks.models.em import Beta, Counts, Maximization, Values, maximize
from firstpage.clicks.models.features import feature_design
from firstpage.clicks.models.pages import CountedPages, PairValues, check_layouts
from firstpage.clicks.models.priors import UNIFORM, prior_means
from firstpage.clicks.sessions import Sessions
from firstpage.core import (
    Array,
    DataError,
    Floats,
    Ints,
    ParameterError,
    Progress,
    Words,
    check_number,
    inherit_sections,
    warn,
)
from firstpage.core.kernels import random_words
from firstpage.data import Dataset

LEAST_PROBABILITY = 1e-9  # of an observed click or skip, in likelihoods
START = 0.5  # of every probability
FACTS = ("log_likelihood", "impressions", "iterations", "converged")  # of a fit, in files
PAIR_FAMILIES = ("attractiveness", "satisfaction")
PAIR_COLUMNS = ("query", "document", "value", "impressions", "hits", "trials")


@dataclass(eq=False)
class ClickModel:
    """A model of clicks on pages of results.

    Parameters
    ----------
    prior : tuple of float, optional
        Pseudo-clicks and pseudo-skips that are added to the counts of every probability.  By
        default those of documents are estimated from the log (empirical Bayes, a Beta distribution
        by marginal likelihood), and those of ranks are 1 and 1.
    iterations : int, optional
        So many plain steps of expectation maximization.  By default steps are accelerated
        (SQUAREM) and end when the fit does not improve.
    tolerance : float, default 1e-8
        Improvement of the log-likelihood per impression at which a fit ends.
    features : Dataset, optional
        Features of documents of queries, with ids.  The prior of attractiveness then has a mean by
        document, a logistic function of its features, which is estimated from the log too.  So
        documents that were never displayed have an attractiveness of their own.

    Attributes
    ----------
    attractiveness_ : PairValues
        The probability of a click on an examined document, per query and document.
    parameters_ : dict of str to array
        All estimated probabilities.
    priors_ : dict of str to tuple of float
        Pseudo-clicks and pseudo-skips of each family of probabilities.
    log_likelihood_ : float
        Log-likelihood of the log that the model was fitted to, of all impressions.
    impressions_ : int
        The number of its impressions.
    iterations_ : int
        Steps of expectation maximization.
    converged_ : bool
        Whether the last steps did not improve the fit.

    Examples
    --------
    >>> import firstpage as fp
    >>> sessions = fp.Sessions.from_arrays(
    ...     query=["q"] * 4, document=["a", "b", "b", "a"], rank=[1, 2, 1, 2],
    ...     clicked=[1, 0, 0, 1])
    >>> model = fp.clicks.DocumentCTR(prior=(1, 1)).fit(sessions)
    >>> model.log_likelihood(sessions).round(3).tolist()
    [-0.288, -0.288, -0.288, -0.288]
    """

    prior: Beta | None = None
    iterations: int | None = None
    tolerance: float = 1e-8
    features: Dataset | None = None

    first_click_only: ClassVar[bool] = False
    uses_documents: ClassVar[bool] = True
    hidden: ClassVar[tuple[str, ...]] = ()  # families of events that a log never shows

    attractiveness_: PairValues = field(init=False)
    parameters_: Values = field(init=False)
    priors_: dict[str, Beta] = field(init=False)
    log_likelihood_: float = field(init=False)
    impressions_: int = field(init=False)
    iterations_: int = field(init=False)
    converged_: bool = field(init=False)
    objectives_: list[float] = field(init=False)

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        inherit_sections(cls)

    def __post_init__(self) -> None:
        check_number(self, "tolerance", above=0.0)
        if self.iterations is not None:
            check_number(self, "iterations", minimum=1, integer=True)
        if self.prior is not None:
            pair = self.prior if isinstance(self.prior, (tuple, list)) else ()
            valid = [float(x) for x in pair if isinstance(x, (int, float)) and 0 < x < np.inf]
            if len(pair) != 2 or len(valid) != 2:
                raise ParameterError(
                    "prior must be two positive numbers, pseudo-clicks and pseudo-skips; got "
                    f"{self.prior!r}."
                )
            self.prior = (valid[0], valid[1])
        if self.features is not None:
            if not isinstance(self.features, Dataset) or self.features.docids is None:
                raise ParameterError("features must be a Dataset with the ids of its documents.")
            if self.prior is not None or not self.uses_documents:
                raise ParameterError(
                    f"{type(self).__name__}: features are for an estimated prior of documents."
                )

    @property
    def name(self) -> str:
        """The model with the parameters that are not the default ones."""
        settings = self._settings().items()
        changed = [f"{name}={x!r}" for name, (x, default) in settings if x != default]
        if self.features is not None:
            changed.append(f"features={self.features.source!r}")
        return type(self).__name__ + (f"({', '.join(changed)})" if changed else "")

    def _settings(self) -> dict[str, tuple[Any, Any]]:
        """Return the value and the default of each parameter that a file stores."""
        stored = (f for f in fields(self) if f.init and f.name != "features")
        return {f.name: (getattr(self, f.name), f.default) for f in stored}

    def __repr__(self) -> str:
        return self.name if "(" in self.name else f"{self.name}()"

    def fit(self, sessions: Sessions, progress: Progress | None = None) -> Self:
        """Estimate the parameters from a log.

        Parameters
        ----------
        sessions : Sessions
            Pages of results with clicks.
        progress : callable, optional
            Called with the number of finished steps and the greatest possible one.

        Returns
        -------
        ClickModel
            The model itself.

        Raises
        ------
        DataError
            If there are no impressions, or ranks are too large for the model.
        """
        check_layouts(sessions)
        pages, state = self._begin(sessions)
        maximize(state, self._iterations(), self.tolerance, self.prior is None, progress)
        self._set(sessions, pages, state)
        return self

    def without_queries(
        self, sessions: Sessions, folds: Ints, progress: Progress | None = None
    ) -> Iterator[Self]:
        """Yield fits without one fold of the queries after the other, with the same priors.

        Parameters
        ----------
        sessions : Sessions
            The log that this model was fitted to.
        folds : array of int
            The fold of each of its queries, from 0.
        progress : callable, optional
            Called with the number of finished fits and their total.

        Yields
        ------
        ClickModel
            A model per fold, whose fit begins at the values of this one.
        """
        pages, state = self._begin(sessions)
        fold = folds[sessions.pairs.query[pages.pair[pages.offsets[:-1]]]]
        of_pairs = PAIR_FAMILIES if self.uses_documents else ()
        for name in state.values:
            fitted = getattr(self, f"{name}_").value if name in of_pairs else self.parameters_[name]
            state.values[name], state.priors[name] = fitted, self.priors_[name]
        if state.design is not None:
            means = prior_means(state.design, self.parameters_["features"])
            strength = sum(self.priors_["attractiveness"])
            state.priors["attractiveness"] = strength * means, strength * (1 - means)
        for number in range(int(folds.max()) + 1):
            if progress is not None:
                progress(number, int(folds.max()) + 1)
            rest = replace(pages, weights=np.where(fold == number, 0.0, pages.weights))
            values = {name: x.copy() for name, x in state.values.items()}
            refit = replace(state, expect=self._expectation(rest), values=values, objectives=[])
            maximize(refit, self._iterations(), self.tolerance, False)
            other = copy(self)
            other._set(sessions, rest, refit)
            yield other

    def _begin(self, sessions: Sessions) -> tuple[CountedPages, Maximization]:
        """Return the pages of a log, and the state of a fit before its first step."""
        pages = CountedPages.from_sessions(sessions, self.first_click_only)
        sizes, fixed = self._prepare(pages)
        prior = UNIFORM if self.prior is None else self.prior
        state = Maximization(
            self._expectation(pages),
            {name: np.full(size, START) for name, size in sizes.items()},
            dict.fromkeys(sizes, prior),
            {name: np.array([index], np.int64) for name, index in fixed.items()},
            float(sessions.n_impressions),
            hidden=self.hidden,
            design=None if self.features is None else feature_design(self.features, sessions),
        )
        for name, index in fixed.items():
            state.values[name][index] = 1.0
        return pages, state

    def _iterations(self) -> int | None:
        return self.iterations

    def _set(self, sessions: Sessions, pages: CountedPages, state: Maximization) -> None:
        """Set the fitted attributes."""
        last = state.expected
        assert last is not None
        self.parameters_ = state.values
        if state.weights is not None:
            self.parameters_["features"] = state.weights
        means = ((name, map(np.mean, prior)) for name, prior in state.priors.items())
        self.priors_ = {name: (float(a), float(b)) for name, (a, b) in means}
        self.log_likelihood_, self.impressions_ = last.log_likelihood, sessions.n_impressions
        self.iterations_, self.objectives_ = state.steps, state.objectives
        self.converged_ = state.converged or self._iterations() is not None
        if not self.converged_:
            warn(f"{self.name}: the fit did not converge in {state.steps} steps.")
        empty = Counts(np.zeros(pages.n_pairs), np.zeros(pages.n_pairs))
        for name in PAIR_FAMILIES:
            if name in state.values and self.uses_documents:
                _, query, document = sessions.pairs
                columns = (query, document, self.parameters_.pop(name), pages.shown)
                counts = last.evidence.get(name, empty)
                self._set_table(name, sessions.queries, sessions.documents, [*columns, *counts])

    def _set_table(
        self, name: str, queries: Sequence[str], documents: Sequence[str], columns: Sequence[Any]
    ) -> None:
        """Set the table of pairs of a family: query, document, value, impressions, hits, trials."""
        pairs = [np.asarray(x, np.int64) for x in columns[:2]]
        numbers = [np.asarray(x, np.float64) for x in columns[2:]]
        table: Any = (tuple(queries), tuple(documents), *pairs, *numbers, self.priors_[name])
        setattr(self, f"{name}_", PairValues(*table))

    def _prepare(self, pages: CountedPages) -> tuple[dict[str, int], dict[str, int]]:
        """Return the size of each family of probabilities, and the index of those that are 1."""
        raise NotImplementedError

    def _expectation(self, pages: CountedPages) -> Any:
        """Return the function from values to expected counts."""
        raise NotImplementedError

    def _probabilities(self, sessions: Sessions, observed: bool) -> Floats:
        """Return the probability of a click, given the clicks above if these are observed."""
        raise NotImplementedError

    def _simulated(self, sessions: Sessions, seeds: Words) -> Array:
        raise NotImplementedError

    def _check_fitted(self) -> None:
        if not hasattr(self, "parameters_"):
            raise DataError(f"{self.name} is not fitted; call fit(sessions) first.")

    def values_of(self, sessions: Sessions, family: str = "attractiveness") -> Floats:
        """Return the probability of the document of each impression.

        Parameters
        ----------
        sessions : Sessions
            Pages of results; their clicks are not read.
        family : {"attractiveness", "satisfaction"}, default "attractiveness"
            Which probability.

        Returns
        -------
        array of float
            One value per impression.  Of documents that the model was not fitted to, it is the mean
            of the prior, by their features if the model has these.
        """
        if not self.uses_documents:
            return np.ones(sessions.n_impressions)
        table: PairValues = getattr(self, f"{family}_")
        weights = self.parameters_.get("features")
        if family != "attractiveness" or weights is None:
            return table.values_of(sessions)
        unknown = table.rows_of(sessions) < 0
        if self.features is None and unknown.any():
            warn(f"{self.name}: set its features, since documents of the log are new to it.")
        design = feature_design(self.features, sessions)
        if self.features is not None and design.shape[1] != len(weights):
            raise DataError(
                f"{self.features.source}: has {design.shape[1] - 2} features; {self.name} was "
                f"fitted to {len(weights) - 2}."
            )
        means = prior_means(design, weights[: design.shape[1]])
        return np.where(unknown, means[sessions.pairs.pair], table.values_of(sessions))

    def log_likelihood(self, sessions: Sessions) -> Floats:
        """Return the log-probability of each observed click or skip, given the clicks above.

        The sum over a page is the log-likelihood of the page.

        Parameters
        ----------
        sessions : Sessions
            Pages of results with clicks.

        Returns
        -------
        array of float
            One value per impression.  Probabilities below 1e-9 count as this.
        """
        self._check_fitted()
        p = self._probabilities(sessions, True)
        observed = np.where(sessions.clicked, p, 1.0 - p)
        return np.log(np.maximum(observed, LEAST_PROBABILITY))

    def click_probabilities(self, sessions: Sessions) -> Floats:
        """Return the probability of a click on each impression, over all clicks above it.

        Parameters
        ----------
        sessions : Sessions
            Pages of results; their clicks are not read.

        Returns
        -------
        array of float
            One value per impression.
        """
        self._check_fitted()
        return self._probabilities(sessions, False)

    def examination_probabilities(self, sessions: Sessions, after_clicks: bool = False) -> Floats:
        """Return the probability that each impression is examined.

        Parameters
        ----------
        sessions : Sessions
            Pages of results.
        after_clicks : bool, default False
            Return the probability given the clicks and skips above the impression on its page.  By
            default it is that over all possible clicks above, and those of the pages are not read.

        Returns
        -------
        array of float
            One value per impression.
        """
        self._check_fitted()
        values = np.maximum(self.values_of(sessions), LEAST_PROBABILITY)
        return self._probabilities(sessions, after_clicks) / values

    def simulate(self, sessions: Sessions, seed: int = 0) -> Sessions:
        """Return pages with simulated clicks.

        Parameters
        ----------
        sessions : Sessions
            Pages of results; their clicks are not read.
        seed : int, default 0
            The random seed.  Each page has its own random numbers.

        Returns
        -------
        Sessions
            The same pages with clicks of the model; what the log says about the order and the
            value of clicks is left out.
        """
        self._check_fitted()
        if seed < 0:
            raise ParameterError(f"seed must be a non-negative integer; got {seed!r}.")
        ends = np.array([0, sessions.n_pages], np.int64)
        seeds = np.empty(sessions.n_pages, np.uint64)
        random_words(np.array([seed], np.uint64), ends, seeds)
        clicks = self._simulated(sessions, seeds).astype(np.int32)
        return replace(sessions, clicks=clicks, first_click=None, value=None)

    def _ranks(self, sessions: Sessions, size: int) -> Ints:
        """Return the rank of each impression, at most the greatest one of the fit."""
        beyond = int((sessions.rank >= size).sum())
        if beyond:
            warn(
                f"{sessions.source}: {beyond:,} impressions are at ranks below {size - 1}, the "
                f"last one that {self.name} was fitted to, and count as if they were there."
            )
        return np.minimum(sessions.rank, size - 1).astype(np.int64)

    def to_dict(self) -> dict[str, Any]:
        """Return the fitted model as JSON data, as in a file of `save_model`.

        Returns
        -------
        dict
            Parameters, priors, and the values of pairs.
        """
        self._check_fitted()
        tables: dict[str, Any] = {}
        for name in PAIR_FAMILIES:
            if (table := getattr(self, f"{name}_", None)) is not None:
                tables[name] = {n: getattr(table, n).tolist() for n in PAIR_COLUMNS}
                tables["queries"], tables["documents"] = list(table.queries), list(table.documents)
        return {
            "model": type(self).__name__,
            "settings": {name: value for name, (value, _) in self._settings().items()},
            **{name: getattr(self, f"{name}_") for name in FACTS},
            "priors": {name: list(prior) for name, prior in self.priors_.items()},
            "parameters": {name: x.tolist() for name, x in self.parameters_.items()},
            "pairs": tables,
        }

    def restored(self, data: Mapping[str, Any]) -> Self:
        """Set the fitted attributes from the data of `to_dict`.

        Parameters
        ----------
        data : mapping
            What `to_dict` returned.

        Returns
        -------
        ClickModel
            The model itself.
        """
        for name in FACTS:
            setattr(self, f"{name}_", data[name])
        self.priors_ = {name: (prior[0], prior[1]) for name, prior in data["priors"].items()}
        self.parameters_ = {n: np.array(x, np.float64) for n, x in data["parameters"].items()}
        pairs = data["pairs"]
        for name in PAIR_FAMILIES:
            if name in pairs:
                columns = [pairs[name][column] for column in PAIR_COLUMNS]
                self._set_table(name, pairs["queries"], pairs["documents"], columns)
        return self
