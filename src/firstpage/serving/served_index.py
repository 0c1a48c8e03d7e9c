"""An index in service, with the features of its texts that a model ranks by."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from firstpage.core import Array, DataError, FirstpageWarning, Ints
from firstpage.learning.models import Model
from firstpage.search import (
    CANDIDATES,
    MANIFEST,
    FirstStage,
    Index,
    Matcher,
    Query,
    RetrievedDocuments,
    TextFeatures,
    with_kind,
)
from firstpage.serving.last_stage import LastStage
from firstpage.serving.snippets import WordTerms, displayed

SAMPLE_DOCUMENTS = 4  # whose first words are searched before a model is taken into service
SAMPLE_WORDS = 4  # of each of these searches
MAX_SAMPLE = 200  # characters of a document that are read for them
MAX_TITLE = 60  # characters of a search


@dataclass(frozen=True)
class IndexSource:
    """The folder of an index, and how it is searched.

    The model ranks `candidates` documents of the first stage.  A model file may name only the
    functions `own_features`, as `module:function`, and an index only the function `encoder`.  The
    page shows the model's results beside those of the first stage `against`, by default the one
    with whose candidates the model was trained.  `last_stage` reorders the model's first documents.
    """

    path: Path
    candidates: int = CANDIDATES
    own_features: tuple[str, ...] = ()
    against: str | None = None
    encoder: str | None = None
    last_stage: LastStage | None = None

    @property
    def manifest(self) -> Path:
        """The file that is replaced whenever the index changes."""
        return self.path / MANIFEST


@dataclass(frozen=True, eq=False)
class ServedIndex:
    """An open index and a model's features of its texts.

    `notes` say what has changed since the model was trained, a line each.
    """

    index: Index
    features: TextFeatures
    candidates: int
    notes: tuple[str, ...] = ()
    against: FirstStage | None = None
    last_stage: LastStage | None = None
    words: WordTerms = field(default_factory=WordTerms)
    _threads: threading.local = field(default_factory=threading.local)

    @classmethod
    def open(cls, source: IndexSource, index: Index, model: Model, name: str) -> ServedIndex:
        """Return the index with the features of a model; refuse a model that does not fit it."""
        if source.encoder is not None and index.vectors is None:
            raise DataError(
                f"{source.path}: has no vectors, so the encoder {source.encoder!r} would have no "
                "effect; leave it out, or add vectors."
            )
        recipe = model.training.get("data", {}).get("recipe")
        if recipe is None:
            raise DataError(
                f"{name}: was not trained on features of texts, so it cannot rank what a search "
                "finds; train on the output of `firstpage features`, or serve without --index."
            )
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", FirstpageWarning)
            features = TextFeatures.from_recipe(index, recipe, name, source.own_features)
        notes = [str(each.message) for each in caught if each.category is FirstpageWarning]
        names = model.feature_names or features.names
        if names != features.names or model.n_features != len(names):
            raise DataError(f"{name}: its features are not those of its recipe; train again.")
        against = None
        if source.against is not None:
            against = with_kind(features.first_stage, source.against)
            against = None if against == features.first_stage else index.stage(against)
        return cls(index, features, source.candidates, tuple(notes), against, source.last_stage)

    @property
    def matcher(self) -> Matcher:
        """The workspaces of this thread."""
        matcher: Matcher | None = getattr(self._threads, "matcher", None)
        if matcher is None:
            matcher = self._threads.matcher = Matcher(self.index.forward)
        return matcher

    @property
    def first_stage(self) -> FirstStage:
        """The first stage with whose candidates the model was trained."""
        return self.features.first_stage

    @property
    def compared_stage(self) -> FirstStage:
        """The first stage whose results the page shows beside those of the model."""
        return self.against or self.first_stage

    @cached_property
    def title_field(self) -> str | None:
        """The field that is shown as the title of a document."""
        return "title" if "title" in self.index.schema.analyzers else None

    def query(self, text: str) -> Query:
        """Return the terms of a typed text."""
        return self.index.forward.query(text, self.first_stage.typos)

    def retrieve(self, query: Query, stage: FirstStage | None = None) -> RetrievedDocuments:
        """Return the candidates of a query."""
        return self.index.retrieve(query, self.candidates, stage or self.first_stage, self.matcher)

    def compute(self, query: Query, rows: Ints) -> Array:
        """Return the features of candidates."""
        return self.features.compute(query, rows, self.matcher)

    @cached_property
    def titles(self) -> tuple[str, ...]:
        """The first words of some documents: of their titles, or of their first text."""
        index = self.index
        live = np.flatnonzero(~index.forward.deleted)
        rows = live[np.unique(np.linspace(0, len(live) - 1, SAMPLE_DOCUMENTS).astype(np.int64))]
        fields = [self.title_field] if self.title_field else list(index.schema.analyzers)
        texts = []
        for source in index.engine.sources(rows.tolist()):
            value = next((source[field] for field in fields if field in source), "")
            words = displayed(value, MAX_SAMPLE).text.split()[:SAMPLE_WORDS]
            texts.append(displayed(" ".join(words), MAX_TITLE).text)
        return tuple(dict.fromkeys(text for text in texts if text))

    def sample_features(self) -> Iterator[Array]:
        """Yield the features of candidates for common terms and for words of some documents."""
        forward = self.index.forward
        common = np.argsort(-forward.df[-1], kind="stable")[:SAMPLE_WORDS]
        for text in (" ".join(forward.terms.terms[t] for t in common.tolist()), *self.titles):
            query = self.query(text)
            candidates = self.retrieve(query).rows
            if len(candidates):
                yield self.compute(query, candidates)
