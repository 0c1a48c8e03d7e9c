"""Plain references: terms, statistics, BM25 and all features by loops over documents."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain, pairwise
from typing import Any

from firstpage.search.analyzer import Analyzer

WHOLE = "document"


def arrangement(field: Sequence[Any], sequences: Sequence[Sequence[Any]], window: int) -> list[int]:
    """Return ordered, near, span, phrase and first of a query's sequences, by brute force."""
    pairs = {pair for sequence in sequences for pair in pairwise(sequence)}
    neighbors = pairs | {(b, a) for a, b in pairs}
    terms = set(chain(*sequences))
    ordered = sum((a, b) in pairs and a != b for a, b in pairwise(field))
    near = sum(
        (other, term) in neighbors and other != term
        for p, term in enumerate(field)
        for other in set(field[max(0, p - window + 1) : p])
    )
    passages = [field[a:b] for a in range(len(field)) for b in range(a + 1, len(field) + 1)]
    present = set(field) & terms
    span = min((len(p) for p in passages if present <= set(p)), default=0) if present else 0
    grams = {
        tuple(sequence[a:b])
        for sequence in sequences
        for a in range(len(sequence))
        for b in range(a + 1, len(sequence) + 1)
    }
    phrase = max((len(p) for p in passages if tuple(p) in grams), default=0)
    first = next((p for p, term in enumerate(field) if term in terms), -1)
    return [ordered, near, span, phrase, first]


class PlainQuery:
    """The terms of a query: counts of known ones, sequences per analyzer, unknown ones."""

    def __init__(self, collection: PlainCollection, text: str) -> None:
        analyzers = list(dict.fromkeys(collection.analyzers.values()))
        self.counts: Counter[str] = Counter()
        self.unknown: set[str] = set()
        self.sequences: list[list[str]] = []
        self.length = len(analyzers[0].terms(text))
        for analyzer in analyzers:
            terms = analyzer.terms(text)
            known = [term for term in terms if collection.df(WHOLE, term)]
            self.sequences.append(known)
            self.unknown |= set(terms) - set(known)
            new = Counter(known)
            self.counts.update({t: n for t, n in new.items() if t not in self.counts})


class PlainCollection:
    """Documents as lists of terms per stream."""

    def __init__(
        self, documents: Mapping[str, Mapping[str, str]], analyzers: Mapping[str, Analyzer]
    ) -> None:
        self.analyzers = dict(analyzers)
        self.streams = (*analyzers, WHOLE)
        self.terms: dict[str, dict[str, list[str]]] = {}
        for name, fields in documents.items():
            streams = {f: a.terms(fields.get(f, "")) for f, a in analyzers.items()}
            self.terms[name] = {**streams, WHOLE: list(chain(*streams.values()))}

    def df(self, stream: str, term: str) -> int:
        return sum(term in document[stream] for document in self.terms.values())

    def cf(self, stream: str, term: str) -> int:
        return sum(document[stream].count(term) for document in self.terms.values())

    def size(self, stream: str) -> int:
        return sum(len(document[stream]) for document in self.terms.values())

    def idf(self, stream: str, term: str) -> float:
        df = self.df(stream, term)
        return math.log(1 + (len(self.terms) - df + 0.5) / (df + 0.5))

    def probability(self, stream: str, term: str) -> float:
        vocabulary = {term for document in self.terms.values() for term in document[WHOLE]}
        return (self.cf(stream, term) + 0.5) / (self.size(stream) + 0.5 * len(vocabulary))

    def bm25(
        self,
        text: str,
        name: str,
        k1: float = 1.2,
        b: float = 0.75,
        weights: Mapping[str, float] | None = None,
    ) -> float:
        """Return BM25 over weighted fields, as in the docstring of BM25."""
        weight = {f: (weights or {}).get(f, 1.0) for f in self.analyzers}
        mean = sum(w * self.size(f) for f, w in weight.items()) / len(self.terms)
        document = self.terms[name]
        length = sum(w * len(document[f]) for f, w in weight.items())
        score = 0.0
        for term, count in PlainQuery(self, text).counts.items():
            tf = sum(w * document[f].count(term) for f, w in weight.items())
            if tf > 0:
                saturation = k1 * (1 - b + b * length / mean)
                score += count * self.idf(WHOLE, term) * tf * (k1 + 1) / (tf + saturation)
        return score

    def vector(self, name: str) -> dict[str, float]:
        """Return the TF-IDF vector of a document, with norm 1."""
        weights = {
            term: (1 + math.log(count)) * self.idf(WHOLE, term)
            for term, count in Counter(self.terms[name][WHOLE]).items()
        }
        norm = math.sqrt(sum(weight**2 for weight in weights.values()))
        return {term: weight / norm for term, weight in weights.items()}

    def features(self, text: str, names: Sequence[str]) -> dict[str, dict[str, float]]:
        """Return all features without latent ones, per document and name."""
        query = PlainQuery(self, text)
        scores = {name: self.bm25(text, name) for name in names}
        ranked = sorted(names, key=lambda name: -scores[name])
        top = {name: scores[name] for name in ranked[:10]}
        total = sum(top.values())
        weights = {n: s / total if total else 1 / len(top) for n, s in top.items()}
        centroid: Counter[str] = Counter()
        for name, weight in weights.items():
            for term, value in self.vector(name).items():
                centroid[term] += weight * value  # type: ignore[assignment]
        norm = math.sqrt(sum(v * v for v in centroid.values()))
        out = {}
        for name in names:
            values: dict[str, float] = {}
            for stream in self.streams:
                values |= {f"{stream}.{k}": v for k, v in self._letor(query, stream, name).items()}
                values |= {f"{stream}.{k}": v for k, v in self._match(query, stream, name).items()}
            values["first_stage.score"] = scores[name]
            values["first_stage.rank"] = 1 / math.log(math.e + ranked.index(name))
            n = sum(query.counts.values())
            values["query.length"] = query.length
            values["query.idf_mean"] = (
                sum(c * self.idf(WHOLE, t) for t, c in query.counts.items()) / n if n else 0.0
            )
            values["query.clarity"] = sum(
                c / n * math.log(c / n / self.probability(WHOLE, t))
                for t, c in query.counts.items()
            )
            product = sum(v * centroid[t] for t, v in self.vector(name).items())
            values["feedback.cosine"] = product / norm if norm else 0.0
            out[name] = values
        return out

    def _letor(self, query: PlainQuery, stream: str, name: str) -> dict[str, float]:
        terms = self.terms[name][stream]
        length, counts = len(terms), query.counts
        mean = max(self.size(stream) / len(self.terms), 1e-9)
        repeated = list(counts.elements())
        tf = {t: terms.count(t) for t in counts}
        idf = {t: self.idf(stream, t) for t in counts}
        background = {t: self.probability(stream, t) for t in counts}
        kinds = {
            "tf": {t: float(tf[t]) for t in counts},
            "idf": {t: idf[t] if tf[t] else 0.0 for t in counts},
            "tfidf": {t: tf[t] * idf[t] for t in counts},
        }
        out = {}
        for kind, values in kinds.items():
            total = sum(values[t] for t in repeated)
            out[f"{kind}_sum"] = total
            out[f"{kind}_min"] = min(values.values(), default=0.0)
            out[f"{kind}_max"] = max(values.values(), default=0.0)
            out[f"{kind}_mean"] = total / max(1, len(repeated))
        out["length"] = length
        saturation = 1.2 * (1 - 0.75 + 0.75 * length / mean)
        out["bm25"] = sum(idf[t] * tf[t] * 2.2 / (tf[t] + saturation) for t in repeated if tf[t])
        absolute, dirichlet, mixed = 0.0, 0.0, 0.0
        for t in repeated:
            if length:
                discounted = max(tf[t] - 0.7, 0) + 0.7 * len(set(terms)) * background[t]
                absolute += math.log(discounted / length)
                mixed += math.log(0.5 * tf[t] / length + 0.5 * background[t])
            else:
                absolute += math.log(background[t])
                mixed += math.log(0.5 * background[t])
            dirichlet += math.log((tf[t] + mean * background[t]) / (length + mean))
        return {
            **out,
            "lm_absolute": absolute,
            "lm_dirichlet": dirichlet,
            "lm_jelinek_mercer": mixed,
        }

    def _match(self, query: PlainQuery, stream: str, name: str) -> dict[str, float]:
        terms = self.terms[name][stream]
        present = [t for t in query.counts if t in terms]
        idf = {t: self.idf(stream, t) for t in query.counts}
        weight = {t: (1 + math.log(n)) * idf[t] for t, n in query.counts.items()}
        norm = math.sqrt(sum(w * w for w in weight.values())) * math.sqrt(max(1, len(terms)))
        product = sum(weight[t] * (1 + math.log(terms.count(t))) * idf[t] for t in present)
        fields = self.analyzers if stream == WHOLE else (stream,)
        arranged = []
        for field in fields:
            own = self.terms[name][field]
            ordered, near, span, phrase, first = arrangement(own, query.sequences, 8)
            n_present = sum(t in own for t in query.counts)
            density = n_present / span if span else 0.0
            arranged.append((ordered, near, density, phrase, 1 / (1 + first) if first >= 0 else 0))
        columns = list(zip(*arranged, strict=True))
        return {
            "coverage": len(present) / max(1, len(query.counts) + len(query.unknown)),
            "idf_coverage": sum(idf[t] for t in present) / sum(idf.values()) if idf else 0.0,
            "cosine": product / norm if norm else 0.0,
            "ordered": math.log1p(sum(columns[0])),
            "near": math.log1p(sum(columns[1])),
            "density": max(columns[2]),
            "phrase": max(columns[3]) / max(1, *map(len, query.sequences)),
            "first": max(columns[4]),
        }
