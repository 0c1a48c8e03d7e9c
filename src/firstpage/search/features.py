"""Features of queries and candidate documents, from an index."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np

from firstpage.core import (
    Array,
    DataError,
    Floats,
    Ints,
    Progress,
    warn,
)
from firstpage.data import Dataset, Qrels, Run
from firstpage.search.families import FAMILIES, LATENT_RANKS, Candidates
from firstpage.search.first_stage import KINDS, FirstStage, FirstStageLike
from firstpage.search.forward import Matcher, Query
from firstpage.search.index import Index
from firstpage.search.manifest import is_outdated, latent_note
from firstpage.search.own_features import OwnFeature, own_feature, own_name, own_values
from firstpage.search.retrieval import first_stage_scores

SHORT = (
    "*.bm25", "document.lm_dirichlet", "*.coverage", "document.idf_coverage", "document.near",
    "document.ordered", "document.length", "title.phrase", "first_stage.*", "feedback.*",
    "latent.similarity_128", "latent.feedback", "vector.*",
)  # fmt: skip
DRIFT_TERMS = 200  # terms whose document frequencies a recipe records
MAX_DRIFT = 0.25  # mean change of the logarithm of document frequencies that is not reported


class TextFeatures:
    """Features of queries and documents of an index.

    Parameters
    ----------
    index : Index
        The index.
    features : str or sequence of str, default "all"
        Sets and names of features: "all", "letor", "short", a family ("matching", "latent", ..) or
        a pattern of names ("title.*").  A string may list several, separated by commas.
    own : sequence of str, optional
        Features of one's own, as "module:function" or "name=module:function".  The function takes
        the text of the query and the documents (mappings) of its candidates, and returns one number
        per document.
    first : {"bm25", "dense", "hybrid"}, BM25 or FirstStage, optional
        The first stage, with which a model that is trained on these features searches; by default
        that of the index.

    Attributes
    ----------
    names : tuple of str
        The names of the features.

    Raises
    ------
    DataError
        If a set, name or function is unknown, or the first stage needs vectors and there are none.

    Examples
    --------
    >>> import os, tempfile
    >>> import firstpage as fp
    >>> documents = [{"id": "d1", "title": "Red shoes"}, {"id": "d2", "title": "Blue coat"}]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     index = fp.Index.from_documents(documents, os.path.join(folder, "shop.index"))
    ...     features = fp.TextFeatures(index, "title.bm25,title.coverage")
    ...     data = features.dataset([("q1", "red shoe")], index.candidates([("q1", "red shoe")]))
    >>> data.feature_names, data.X.shape
    (('title.bm25', 'title.coverage'), (1, 2))
    """

    def __init__(
        self,
        index: Index,
        features: str | Sequence[str] = "all",
        own: Sequence[str] = (),
        first: FirstStageLike = None,
    ) -> None:
        self.index = index
        own = [own] if isinstance(own, str) else own
        self._own_texts = tuple(own)
        self.names: tuple[str, ...] = ()
        self._basis: object = None
        self._follow_index()
        self.first_stage = index.stage(first)
        words = list(features)
        if isinstance(features, str):
            words = [word.strip() for word in features.split(",")]
        families = self._family_names()
        complete = self._values.complete.difference(words)  # nothing is missing in these fields
        families["values"] = [name for name in families["values"] if name not in complete]
        every = [name for names in families.values() for name in names]
        chosen = _selected(words, families, every)
        self._own: dict[str, OwnFeature] = {}
        for text in own:
            name, function = own_feature(text)
            if name in every or name in self._own:
                raise DataError(f"a feature is named {name!r} already; name yours differently.")
            self._own[name] = function
        if {"all", "short", "latent"} & set(words):
            self._note_latent()
        self._families = {
            family: names for family, names in families.items() if chosen & set(names)
        }
        self.names = (*(name for name in every if name in chosen), *self._own)
        self._basis = _basis(index, self.names)
        self._chosen = chosen

    def _follow_index(self) -> None:
        """Compute what depends on all documents, anew if the index has changed."""
        if getattr(self, "_forward", None) is not self.index.forward:
            if self._basis not in (None, _basis(self.index, self.names)):
                raise DataError(
                    f"{self.index.path}: the latent space or the encoder of vectors has changed; "
                    "create the features again."
                )
            self._values = _Values(self.index)
            self._idf = self.index.forward.idf()[-1]
            self._forward = self.index.forward

    def _note_latent(self) -> None:
        """Warn if the latent space has too few dimensions for features, is missing or is old."""
        if any(changes := self.index.latent_changes):
            warn(latent_note(self.index.path, changes))
        n_dimensions = self.index.latent_vectors.shape[1]
        absent = [f"latent.similarity_{rank}" for rank in LATENT_RANKS if rank > n_dimensions]
        if absent:
            reason = (
                f"the latent space has {n_dimensions} dimensions, so there is no "
                f"{', '.join(absent)}"
                if n_dimensions
                else "there is no latent space, on request or because there are too few documents, "
                "so there are no features latent.*"
            )
            warn(
                f"{self.index.path}: {reason}; fit it again (`firstpage index --refit`) if the "
                "index has grown."
            )

    def _family_names(self) -> dict[str, list[str]]:
        """Return the names of all features by family, computed for a query without candidates."""
        nothing = np.empty(0, np.int64)
        probe = self._candidates(Query("", nothing, nothing, nothing, 0), nothing, np.empty(0))
        names = {name: [n for n, _ in family(probe)] for name, family in FAMILIES.items()}
        return {**names, "values": [n for n, _ in self._values.columns(nothing)]}

    def _candidates(
        self, query: Query, rows: Ints, scores: Floats, matcher: Matcher | None = None
    ) -> Candidates:
        index = self.index
        matcher = matcher or Matcher(index.forward)
        return Candidates(
            index.forward,
            query,
            rows,
            scores,
            matcher,
            self._idf,
            index.latent,
            index.latent_vectors,
            index.dense.encoded,
            self.first_stage.fusion,
        )

    def compute(self, query: Query, rows: Ints, matcher: Matcher | None = None) -> Array:
        """Return the features of a query's candidates.

        Parameters
        ----------
        query : Query
            The terms, from `index.forward.query`.
        rows : ndarray
            The candidates, from `index.retrieve` or `index.forward.rows`, in any order.
        matcher : Matcher, optional
            The workspaces of this thread.

        Returns
        -------
        ndarray of shape (n_candidates, n_features)
            The features as float32.
        """
        self._follow_index()
        matcher = matcher or Matcher(self.index.forward)
        scores = first_stage_scores(
            self.index.forward, query, rows, self.first_stage.scoring, matcher
        )
        order = np.lexsort((rows, -scores))
        out = np.empty((len(rows), len(self.names)), np.float32)
        out[order] = self._ranked_features(query, rows[order], scores[order], matcher)
        return out

    def _ranked_features(self, query: Query, rows: Ints, scores: Floats, matcher: Matcher) -> Array:
        """Return the features of candidates that are in the order of the first stage."""
        out = np.empty((len(rows), len(self.names)), np.float32)
        column = 0
        candidates = self._candidates(query, rows, scores, matcher)
        for family in self._families:
            for name, values in self._columns(family, candidates):
                if name in self._chosen:
                    out[:, column] = values
                    column += 1
        if self._own:
            documents = self.index.engine.sources(rows.tolist())
            for name, function in self._own.items():
                out[:, column] = own_values(name, function, query.text, documents)
                column += 1
        return out

    def _columns(self, family: str, candidates: Candidates) -> Iterable[tuple[str, Floats]]:
        """Return the names and values of the features of a family."""
        if family == "values":
            return self._values.columns(candidates.rows)
        return FAMILIES[family](candidates)

    def dataset(
        self,
        queries: Iterable[tuple[str, str]],
        candidates: Run,
        qrels: Qrels | None = None,
        threads: int | None = None,
        progress: Progress | None = None,
    ) -> Dataset:
        """Return the features of all candidates, with their grades as labels.

        Parameters
        ----------
        queries : iterable of (str, str)
            Ids and texts of queries.
        candidates : Run
            The candidates of each query, such as those of `Index.candidates`.
        qrels : Qrels, optional
            The judgments; candidates without one get the label 0.  By default labels are NaN, and
            the data can only be ranked.
        threads : int, optional
            The number of threads; by default one per CPU.
        progress : callable, optional
            Called with the number of finished queries and the number of all.

        Returns
        -------
        Dataset
            One row per candidate, with the names of the features and the recipe that computed them.

        Raises
        ------
        DataError
            If a candidate is not in the index, a query of the candidates has no text, or no
            candidate is judged.
        """
        if threads is not None and threads < 1:
            raise DataError(f"threads must be at least 1; got {threads}.")
        self._follow_index()
        texts = dict(queries)
        names = list(candidates.queries)
        source = candidates.source or "candidates"
        missing = [name for name in names if name not in texts]
        if missing:
            raise DataError(
                f"{source}: {len(missing)} of {len(names)} queries have no text, such as "
                f"{missing[0]!r}; give the queries that the candidates were retrieved for."
            )
        ids = list(candidates.docids)
        rows = self.index.forward.rows(
            ids, source, "; add what is missing, or retrieve the candidates again"
        )
        self._note_stage(candidates)
        offsets = candidates.offsets
        X = np.empty((len(rows), len(self.names)), np.float32)

        def fill(numbers: Sequence[int]) -> int:
            matcher = Matcher(self.index.forward)
            for q in numbers:
                part = slice(offsets[q], offsets[q + 1])
                query = self.index.forward.query(texts[names[q]], self.first_stage.typos)
                X[part] = self.compute(query, rows[part], matcher)
            return len(numbers)

        if _uses(self.names, "vector"):
            self.index.dense.space("vectors").prepare([texts[name] for name in names])
        count = threads or os.cpu_count() or 1
        blocks = [range(i, min(i + 16, len(names))) for i in range(0, len(names), 16)]
        done = 0
        with ThreadPoolExecutor(count) as pool:
            for finished in pool.map(fill, blocks):
                done += finished
                if progress is not None:
                    progress(done, len(names))
        self._values.note_missing(rows, self._chosen)
        y = _labels(candidates, qrels)
        return Dataset(
            X,
            y,
            offsets,
            candidates.queries,
            candidates.docids,
            self.names,
            source,
            recipe=self.recipe(),
        )

    def recipe(self) -> dict[str, Any]:
        """Return how the features are computed, as JSON that model files store.

        Returns
        -------
        dict
            The features, the fields with their analyzers, the fingerprint of the index, the first
            stage, the encoder if features depend on it, and document frequencies of common terms.
        """
        forward = self.index.forward
        df = forward.df[-1]
        common = np.argsort(-df, kind="stable")[: min(DRIFT_TERMS, int((df > 0).sum()))]
        return {
            "features": list(self.names),
            "own": list(self._own_texts),
            "encoder": self.index.encoder_record if _uses(self.names, "vector") else None,
            "schema": self.index.schema.to_dict(),
            "fingerprint": self.index.fingerprint,
            "first_stage": self.first_stage.to_dict(),
            "documents": forward.n_documents,
            "document_frequencies": {forward.terms.terms[t]: int(df[t]) for t in common.tolist()},
        }

    def _note_stage(self, candidates: Run) -> None:
        """Search later as the candidates were retrieved, if their run says how."""
        if candidates.name in KINDS and candidates.name != self.first_stage.kind:
            self.first_stage = self.index.stage(replace(self.first_stage, kind=candidates.name))
            warn(
                f"{candidates.source or 'candidates'}: were retrieved by {candidates.name}, so "
                f"models of these features will search by {candidates.name} too."
            )

    @classmethod
    def from_recipe(
        cls, index: Index, recipe: Mapping[str, Any], source: str, own: Collection[str] = ()
    ) -> TextFeatures:
        """Return the features of a recipe; refuse an index that does not fit it, and report drift.

        Parameters
        ----------
        index : Index
            The index.
        recipe : mapping
            The recipe of a model file.
        source : str
            What messages call the model.
        own : collection of str, optional
            The functions that the recipe may name as features of one's own.  No other function is
            imported or called.

        Returns
        -------
        TextFeatures
            The features.

        Raises
        ------
        DataError
            If the recipe names another function, or if fields, analyzers, latent space or encoder
            are not those of the recipe.
        """
        unnamed = [text for text in recipe["own"] if text not in own]
        if unnamed:
            raise DataError(
                f"{source}: uses the function {unnamed[0]!r} as a feature. A model file may call "
                f"only functions that you name: --feature {unnamed[0]} (in Python: "
                f"own=[{unnamed[0]!r}])."
            )
        if recipe["schema"]["text"] != index.schema.to_dict()["text"]:
            raise DataError(
                f"{source}: was trained with text fields or analyzers other than those of "
                f"{index.path}; use its index, or train again."
            )
        latent = _uses(recipe["features"], "latent")
        if recipe["schema"] != index.schema.to_dict():
            differing = "other numeric fields"
        elif latent and recipe["fingerprint"] != index.fingerprint:
            differing = "another latent space"
        else:
            differing = ""
        if differing:
            raise DataError(
                f"{source}: was trained with {differing} than {index.path} has; use its index, or "
                "compute the features and train again."
            )
        _check_encoder(index, recipe.get("encoder"), source)
        drift = _drift(index, recipe)
        if drift > MAX_DRIFT:
            warn(
                f"{source}: document frequencies of {index.path} have changed by a factor of "
                f"{np.exp(drift):.2f} on average since training; consider training again."
            )
        changes = index.latent_changes
        if latent and is_outdated(changes, index.forward.n_documents):
            warn(latent_note(index.path, changes))
        own_names = {own_name(text) for text in recipe["own"]}
        names = [name for name in recipe["features"] if name not in own_names]
        return cls(index, names, recipe["own"], FirstStage.from_dict(recipe["first_stage"]))


def _uses(names: Iterable[str], family: str) -> bool:
    return any(name.startswith(f"{family}.") for name in names)


def _basis(index: Index, names: Collection[str]) -> object:
    """Return what features depend on besides documents: fields, and if used, spaces of vectors."""
    of_words = index.fingerprint if _uses(names, "latent") else index.schema.to_dict()
    return of_words, index.encoder_record if _uses(names, "vector") else None


def _check_encoder(index: Index, record: Mapping[str, Any] | None, source: str) -> None:
    """Refuse an index whose vectors are not of the encoder that a model was trained with."""
    if record is None:
        return
    present = index.encoder_record
    if present is None:
        raise DataError(
            f"{source}: was trained with vectors of {record['name']}, and {index.path} has none; "
            f"add them (`firstpage index -o {index.path} --vectors {record['name']}`)."
        )
    if present["digest"] != record["digest"]:
        raise DataError(
            f"{source}: was trained with vectors of {record['name']} ({record['digest'][:12]}), "
            f"and those of {index.path} are of {present['name']} ({present['digest'][:12]}); use "
            "its index, or compute the features and train again."
        )


def _drift(index: Index, recipe: Mapping[str, Any]) -> float:
    """Return the mean absolute change of the logarithm of relative document frequencies."""
    forward, before = index.forward, recipe["document_frequencies"]
    if not before or not forward.n_documents:
        return 0.0
    changes = []
    for term, df in before.items():
        number = forward.terms.number(term)
        now = 0 if number is None else int(forward.df[-1, number])
        changes.append(
            np.log((now + 0.5) / forward.n_documents) - np.log((df + 0.5) / recipe["documents"])
        )
    return float(np.mean(np.abs(changes)))


class _Values:
    """Features of numeric and date fields: the value, and its logarithm with the sign kept.

    A missing value is replaced by the median of the field, with a feature that says so.
    """

    def __init__(self, index: Index) -> None:
        live = ~index.forward.deleted
        self._fields = index.forward.numbers
        self._medians = {}
        self.complete: set[str] = set()  # names of features that say nothing
        for name, values in self._fields.items():
            present = values[live][~np.isnan(values[live])]
            self._medians[name] = float(np.median(present)) if len(present) else 0.0
            if len(present) == live.sum():
                self.complete.add(f"{name}.missing")

    def columns(self, rows: Ints) -> Iterable[tuple[str, Floats]]:
        """Yield the names and values of the features."""
        for name, values in self._fields.items():
            value = values[rows]
            missing = np.isnan(value)
            value = np.where(missing, self._medians[name], value)
            yield f"{name}.value", value
            yield f"{name}.log", np.sign(value) * np.log1p(np.abs(value))
            yield f"{name}.missing", missing.astype(float)

    def note_missing(self, rows: Ints, chosen: set[str]) -> None:
        """Warn about missing values of chosen features, which were replaced."""
        for name, values in self._fields.items():
            count = int(np.isnan(values[rows]).sum())
            if count and {f"{name}.value", f"{name}.log"} & chosen:
                mark = f", and {name}.missing is 1" if f"{name}.missing" in chosen else ""
                warn(
                    f"{name} is missing in {count:,} of {len(rows):,} candidates; the median "
                    f"{self._medians[name]:g} stands for it{mark}."
                )


def _selected(
    words: Sequence[str], families: Mapping[str, list[str]], every: list[str]
) -> set[str]:
    chosen: set[str] = set()
    for word in words:
        if word == "all":
            chosen |= set(every)
        elif word in every:  # a name may contain characters of patterns
            chosen.add(word)
        elif families.get(word):
            chosen |= set(families[word])
        else:
            patterns = SHORT if word == "short" else (word,)
            matched = {n for p in patterns for n in every if fnmatch.fnmatchcase(n, p)}
            if not matched:
                sets = ", ".join(family for family, names in families.items() if names)
                raise DataError(
                    f"no feature of this index is named {word!r}; the sets are all, short, "
                    f"{sets}, and names are such as {every[0]}."
                )
            chosen |= matched
    return chosen


def _labels(candidates: Run, qrels: Qrels | None) -> Floats:
    """Return the grades of candidates, 0 for unjudged ones; NaN without judgments."""
    if qrels is None:
        return np.full(len(candidates.values), np.nan)
    judged = qrels.to_dict()
    known = [name for name in candidates.queries if name in judged]
    source = qrels.source or "qrels"
    if not known:
        raise DataError(f"{source}: judges none of the candidates' queries; are the ids the same?")
    labels = np.empty(len(candidates.values))
    n_judged, docids = 0, list(candidates.docids)
    for q, name in enumerate(candidates.queries):
        grades = judged.get(name, {})
        for i in range(candidates.offsets[q], candidates.offsets[q + 1]):
            grade = grades.get(docids[i])
            n_judged += grade is not None
            labels[i] = grade or 0.0
    if not n_judged:
        raise DataError(
            f"{source}: judges none of the {len(labels):,} candidates; are the ids of documents "
            "the same?"
        )
    unjudged = len(candidates) - len(known)
    note = f"; {unjudged} of {len(candidates)} queries have no judgment" if unjudged else ""
    warn(
        f"{source}: {n_judged:,} of {len(labels):,} candidates are judged; the others have the "
        f"label 0{note}."
    )
    return labels
