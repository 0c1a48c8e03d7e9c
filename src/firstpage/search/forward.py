"""The forward index: the terms of every document in the order of their positions.

The engine answers which documents match.  Features, feedback and latent semantics also need to know
where and how often terms occur in a document, which the forward index answers by reading the
document's tokens.  All arrays are files to which documents are appended, and they are mapped into
memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array

from firstpage.core import Array, Bools, DataError, Floats, Ints, warn
from firstpage.core.kernels import spelling as kernel_of_spelling
from firstpage.core.kernels import text as kernel
from firstpage.data import Ids
from firstpage.search.analyzer import STOP, Analyzer, TermNumbers, tokenize

WHOLE = "document"  # what features call all text fields together
WINDOW = 8  # positions within which two terms are near
MAX_WORDS = 20_000  # of a query
MAX_COUNTS = 1 << 21  # of terms in fields of documents, which are in memory at a time
MIN_MISSPELLED = 4  # characters of a word that may be misspelled
LONG_WORD = 5  # characters; words with more of them may differ by two edits
BLOCK_ROWS = 64  # blocks are multiples of it, so that sums are rounded as in one block


@dataclass(frozen=True, eq=False)
class ForwardIndex:
    """Terms, statistics and values of all documents; a document is a row.

    Attributes
    ----------
    analyzers : dict of str to Analyzer
        The analyzer of each text field, in the order of the fields.
    tokens : ndarray of uint32
        The term numbers of all documents, field by field, without stop words.
    ends : ndarray of shape (n_rows, n_fields)
        Where each field of each document ends in `tokens`.
    distinct : ndarray of shape (n_rows, n_fields + 1)
        The number of distinct terms of each field, and of the whole document.
    df, cf : ndarray of shape (n_fields + 1, n_terms)
        The number of documents with each term, and of its occurrences, per field and in the whole
        document.  Deleted documents do not count.
    deleted : ndarray of bool of shape (n_rows,)
        Which documents were deleted or replaced.
    ids : Ids
        The id of each document.
    numbers : dict of str to ndarray of shape (n_rows,)
        The values of numeric and date fields; NaN where a document has none.
    terms : TermNumbers
        The number of each term.
    """

    analyzers: dict[str, Analyzer]
    tokens: Array
    ends: Ints
    distinct: Ints
    df: Ints
    cf: Ints
    deleted: Bools
    ids: Ids
    numbers: dict[str, Floats]
    terms: TermNumbers

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of the text fields."""
        return tuple(self.analyzers)

    @property
    def n_rows(self) -> int:
        """The number of documents, deleted ones included."""
        return len(self.ends)

    @cached_property
    def n_documents(self) -> int:
        """The number of documents, without deleted ones."""
        return self.n_rows - int(np.count_nonzero(self.deleted))

    @cached_property
    def n_occurrences(self) -> Ints:
        """The number of terms of all documents, per field and in the whole document."""
        totals: Ints = self.cf.sum(axis=1)
        return totals

    @cached_property
    def n_terms(self) -> int:
        """The number of distinct terms of all documents, without deleted ones."""
        return int(np.count_nonzero(self.df[-1]))

    @cached_property
    def row_of(self) -> dict[str, int]:
        """The row of each document id, without deleted documents."""
        live = np.flatnonzero(~self.deleted)
        return dict(zip(self.ids[live], live.tolist(), strict=True))

    def lengths(self, rows: Ints) -> Ints:
        """Return the number of terms of each field of documents, and of the whole documents."""
        starts = np.where(rows > 0, self.ends[rows - 1, -1], 0)
        bounds = np.column_stack([starts, self.ends[rows]])
        return np.column_stack([np.diff(bounds, axis=1), bounds[:, -1] - starts])

    def rows(self, ids: Sequence[str], location: str, advice: str = "") -> Ints:
        """Return the rows of documents; raise DataError if one is not in the index."""
        row_of = self.row_of
        missing = list(dict.fromkeys(name for name in ids if name not in row_of))
        if missing:
            subject = f"{len(missing)} documents are" if len(missing) > 1 else "a document is"
            raise DataError(
                f"{location}: {subject} not in the index, such as {missing[0]!r}{advice}."
            )
        return np.array([row_of[name] for name in ids], np.int64)

    def idf(self, terms: Ints | slice = slice(None)) -> Floats:
        """Return ln(1 + (N - df + 0.5) / (df + 0.5)) per field and in the whole document."""
        df = self.df[:, terms]
        idf: Floats = np.log1p((self.n_documents - df + 0.5) / (df + 0.5))
        return idf

    def query(self, text: str, typos: bool = False) -> Query:
        """Return a typed text as terms of this index, analyzed like each field.

        With `typos`, the nearest term stands for a word that no document contains.
        """
        return Query.from_text(text, self, typos)

    @cached_property
    def _spelling(self) -> tuple[Array, Ints]:
        """The letters of all terms, and where each term ends."""
        terms = self.terms.terms
        letters = np.frombuffer("".join(terms).encode("utf-32-le"), np.uint32)
        return letters, np.cumsum(np.fromiter(map(len, terms), np.int64, len(terms)))

    def nearest(self, word: str) -> int | None:
        """Return the term that a word is most likely a misspelling of, or None.

        Words of 4 and 5 characters may differ by one edit (a letter too many, missing, other, or
        two letters swapped), longer ones by two; the first letter must be the same.
        """
        allowed = (len(word) >= MIN_MISSPELLED) + (len(word) > LONG_WORD)
        if not allowed or any(character.isdigit() for character in word):
            return None
        letters, ends = self._spelling
        number = kernel_of_spelling.nearest_word(
            np.frombuffer(word.encode("utf-32-le"), np.uint32),
            letters,
            ends,
            self.df[-1],
            allowed,
            np.empty((3, len(word) + allowed + 2), np.int64),
        )
        return None if number < 0 else number

    def tfidf(self, rows: Ints, idf: Floats, dtype: type = np.float64) -> csr_array:
        """Return the TF-IDF vectors of documents, with norm 1, over terms with a positive idf."""
        bound = int(self.lengths(rows)[:, -1].sum())
        indptr, indices = np.zeros(len(rows) + 1, np.int64), np.empty(bound, np.int64)
        values, counts = np.empty(bound), np.zeros(len(self.terms), np.int64)
        kernel.tfidf_rows(self.tokens, self.ends, rows, idf, counts, indptr, indices, values)
        size = int(indptr[-1])
        shape = (len(rows), len(self.terms))
        return csr_array((values[:size].astype(dtype, copy=False), indices[:size], indptr), shape)


@dataclass(frozen=True, eq=False)
class Query:
    """The terms of a query that occur in the index.

    Attributes
    ----------
    text : str
        What was typed.
    terms : ndarray of shape (n_terms,)
        The distinct terms of the query that the index contains.
    counts : ndarray of shape (n_terms,)
        How often the query contains each of them.
    sequence : ndarray
        The query as indices of `terms`, in the order of the query; one sequence per analyzer, with
        -1 between them.
    n_unknown : int
        The number of distinct terms that no document contains.
    length : int
        The number of terms of the query by the first analyzer, repeated and unknown ones included.
    corrected : tuple of (str, str)
        Words that no document contains, with the terms that stand for them.
    """

    text: str
    terms: Ints
    counts: Ints
    sequence: Ints
    n_unknown: int
    length: int = 0
    corrected: tuple[tuple[str, str], ...] = ()

    @cached_property
    def sequence_length(self) -> int:
        """The length of the longest sequence."""
        bounds = np.flatnonzero(np.concatenate([[-1], self.sequence, [-1]]) < 0)
        return int(np.diff(bounds).max()) - 1

    @classmethod
    def from_text(cls, text: str, forward: ForwardIndex, typos: bool = False) -> Query:
        """Return the terms of a text; fields with other analyzers add their own terms."""
        tokens = tokenize(text)
        if len(tokens) > MAX_WORDS:
            warn(f"a query has {len(tokens):,} words; only the first {MAX_WORDS:,} count.")
            del tokens[MAX_WORDS:]
        sequences: dict[tuple[int, ...], None] = {}
        length = 0
        unknown: set[str] = set()
        corrected: dict[str, str] = {}
        numbers: dict[int, int] = {}
        counts: list[int] = []
        for order, analyzer in enumerate(dict.fromkeys(forward.analyzers.values())):
            term_of = analyzer.terms_of(set(tokens))
            before = set(numbers)
            sequence: list[int] = []
            for token in tokens:
                term = term_of[token]
                number = forward.terms.number(term) if term else 0
                if number is None or (number and not forward.df[-1, number]):
                    number = (forward.nearest(term) if typos else None) or 0
                    if number:
                        corrected[token] = forward.terms.terms[number]
                    else:
                        unknown.add(term)
                length += order == 0 and term != STOP
                if not number:
                    continue
                slot = numbers.setdefault(number, len(numbers))
                sequence.append(slot)
                if slot == len(counts):
                    counts.append(0)
                counts[slot] += number not in before  # counted by the analyzer of an earlier field
            sequences[tuple(sequence)] = None
        joined = [slot for slots in sequences for slot in (*slots, -1)]
        return cls(
            text,
            np.array(list(numbers), np.int64),
            np.array(counts, np.int64),
            np.array(joined[:-1], np.int64),
            len(unknown),
            length,
            tuple(corrected.items()),
        )


class Matcher:
    """Counts and locates the terms of queries in documents; keeps its workspaces.

    A matcher belongs to one thread.
    """

    def __init__(self, forward: ForwardIndex) -> None:
        self._forward = forward
        self._slots = np.zeros(len(forward.terms), np.int32)

    def counts(self, query: Query, rows: Ints) -> Array:
        """Return how often each query term occurs: an array of documents, fields and terms."""
        forward = self._forward
        tf = np.empty((len(rows), len(forward.fields), len(query.terms)), np.int32)
        self._slots[query.terms] = np.arange(1, len(query.terms) + 1)
        kernel.count_matches(forward.tokens, forward.ends, rows, self._slots, tf)
        self._slots[query.terms] = 0
        return tf

    def blocks(self, query: Query, rows: Ints) -> Iterator[tuple[Ints, Array]]:
        """Yield the rows in blocks with their `counts`, so that a long query needs little memory.

        The rows of a query of usual length are one block.
        """
        per_row = max(1, len(self._forward.fields) * len(query.terms))
        size = max(1, MAX_COUNTS // per_row // BLOCK_ROWS) * BLOCK_ROWS
        for start in range(0, max(1, len(rows)), size):
            block = rows[start : start + size]
            yield block, self.counts(query, block)

    def arrangement(self, query: Query, rows: Ints) -> Floats:
        """Return how query terms are arranged in documents: an array of documents, fields and 5.

        The five are described at `kernels.text.match_positions`.
        """
        forward, n_slots = self._forward, len(query.terms)
        longest = int(forward.lengths(rows)[:, -1].max(initial=0))
        sequence = query.sequence
        places = np.argsort(sequence, kind="stable")[np.count_nonzero(sequence < 0) :]
        first_place = np.searchsorted(sequence[places], np.arange(n_slots + 1))
        out = np.empty((len(rows), len(forward.fields), 5))
        positions, matched = np.empty(longest, np.int64), np.empty(longest, np.int64)
        last, runs = np.empty(n_slots, np.int64), np.empty(len(sequence), np.int64)
        self._slots[query.terms] = np.arange(1, n_slots + 1)
        kernel.match_positions(
            tokens=forward.tokens,
            ends=forward.ends,
            rows=rows,
            slots=self._slots,
            query=sequence,
            first_place=first_place,
            places=places,
            window=WINDOW,
            positions=positions,
            matched=matched,
            last=last,
            runs=runs,
            run_ends=np.full(len(sequence), -1),
            out=out,
        )
        self._slots[query.terms] = 0
        return out
