"""Rows grouped by query: from one query id per row to contiguous groups."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypedDict

import numpy as np

from firstpage.core import AnyWords, Bools, DataError, Floats, Ints, Words
from firstpage.core.kernels import select_top
from firstpage.core.kernels import sorting as kernel
from firstpage.data.ids import Ids, id_text, is_missing

FEW_DOCUMENTS = 1024  # so few are sorted faster by one kernel than by NumPy and two kernels
MAX_SHORT_WORDS = 1 << 16  # documents of a list; of more, words of 32 bits leave too few cells


class _SortWorkspace(TypedDict):
    """Arrays in which kernels sort a group."""

    words: Words
    word_workspace: Words
    workspace: Ints


def _workspace(size: int) -> _SortWorkspace:
    words, word_workspace = np.empty(size, np.uint64), np.empty(size, np.uint64)
    return {"words": words, "word_workspace": word_workspace, "workspace": np.empty(size, np.int64)}


def _padded_rows(lengths: Ints) -> tuple[Ints, Ints, list[list[int]]]:
    """Return where the row of each group begins, its width, and the count and width of each block.

    Rows of equal width follow each other in a block; groups are padded to few different widths.
    Groups of at most SHORT_LIST have no row.
    """
    starts, widths = np.zeros_like(lengths), np.zeros_like(lengths)
    long = np.flatnonzero(lengths > kernel.SHORT_LIST)
    if not len(long):
        return starts, widths, []
    exact = lengths[long]
    if exact.min() == exact.max():
        widths[long], width = exact, int(exact[0])
        starts[long] = np.arange(0, len(long) * width, width)
        return starts, widths, [[len(long), width]]
    step = np.exp2(np.floor(np.log2(exact)) - 3).astype(np.int64)
    padded = -(-exact // step) * step  # at most an eighth is padding
    by_width = np.argsort(padded, kind="stable")
    widths[long] = padded
    starts[long[by_width]] = np.cumsum(padded[by_width]) - padded[by_width]
    different, counts = np.unique(padded, return_counts=True)
    return starts, widths, np.stack([counts, different], axis=1).tolist()


def _sorted_words(values: Floats, offsets: Ints, lengths: Ints) -> tuple[AnyWords, Ints]:
    """Return rows of words in the order of the documents, and where each group's row begins.

    NumPy sorts all rows of a width together.
    """
    starts, widths, blocks = _padded_rows(lengths)
    size, bits = int(widths.sum()), values.view(np.uint64)
    words: AnyWords = np.empty(size, np.uint32)
    fits = int(lengths.max(initial=0)) <= MAX_SHORT_WORDS
    if not fits or kernel.pack_cells(values, bits, offsets, starts, widths, words) >= 0:
        words = np.empty(size, np.uint64)
        kernel.pack_cells(values, bits, offsets, starts, widths, words)
    start = 0
    for count, width in blocks:
        words[start : start + count * width].reshape(count, width).sort(axis=1)
        start += count * width
    return words, starts


def sort_groups(values: Floats, offsets: Ints) -> tuple[Ints, Floats]:
    """Return the rows of each group by descending value (stable), and the sorted values."""
    values = np.ascontiguousarray(values, np.float64)
    order, keys = np.empty(len(values), np.int64), np.empty(len(values))
    lengths = np.diff(offsets)
    longest = int(lengths.max(initial=0))
    if len(values) <= FEW_DOCUMENTS:
        kernel.rank(
            scores=values,
            bits=values.view(np.uint64),
            offsets=offsets,
            **_workspace(longest),
            order=order,
            keys=keys,
        )
    else:
        words, starts = _sorted_words(values, offsets, lengths)
        workspace = np.empty(len(values), np.int64)
        kernel.unpack_order(
            scores=values,
            offsets=offsets,
            starts=starts,
            words=words,
            workspace=workspace,
            order=order,
            keys=keys,
        )
    return order, keys


def labels_by_score(scores: Floats, labels: Floats, offsets: Ints) -> tuple[Floats, Ints, int]:
    """Return the labels by descending score, tie lengths at each tie's start, and their maximum."""
    ranked, tie_lengths = np.empty(len(scores)), np.empty(len(scores), np.int64)
    lengths = np.diff(offsets)
    longest = int(lengths.max(initial=0))
    items = np.empty(longest, np.int64)
    if len(scores) <= FEW_DOCUMENTS:
        longest_tie = kernel.rank_labels(
            scores=scores,
            bits=scores.view(np.uint64),
            labels=labels,
            offsets=offsets,
            items=items,
            **_workspace(longest),
            ranked=ranked,
            block=tie_lengths,
        )
    else:
        words, starts = _sorted_words(scores, offsets, lengths)
        longest_tie = kernel.unpack_labels(
            scores=scores,
            labels=labels,
            offsets=offsets,
            starts=starts,
            words=words,
            items=items,
            keys=np.empty(longest),
            workspace=np.empty_like(items),
            ranked=ranked,
            block=tie_lengths,
        )
    return ranked, tie_lengths, longest_tie


def top_rows(scores: Floats, offsets: Ints, depth: int) -> tuple[Ints, Ints]:
    """Return rows, with new offsets, that contain the first `depth` ranks of each group.

    All rows that are tied with one of them are contained too; rows are in file order.
    """
    groups = 16 if depth <= 10 else -(-8 * depth // 40) * 8
    rows, ends = np.empty(len(scores) + 1, np.int64), np.zeros(len(offsets), np.int64)
    maxima, items = np.empty(groups), np.empty(groups, np.int64)
    select_top(
        scores=scores,
        offsets=offsets,
        depth=depth,
        groups=groups,
        maxima=maxima,
        maxima_bits=maxima.view(np.uint64),
        items=items,
        **_workspace(groups),
        rows=rows,
        ends=ends[1:],
    )
    return rows[: ends[-1]], ends


def offsets_from_lengths(lengths: Iterable[int] | Ints | Bools) -> Ints:
    """Return where each group begins and the last one ends, given the sizes of the groups."""
    sizes = lengths if isinstance(lengths, np.ndarray) else np.fromiter(lengths, np.int64)
    offsets = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return offsets


def group_rows(qid: Ids | Iterable[object], rows: int) -> tuple[Ids, Ints, Ints | None]:
    """Return query ids in order of first appearance, offsets, and a permutation of the rows.

    The permutation makes the rows of each query contiguous and keeps their order; it is None
    where they are contiguous already.
    """
    names, numbers = _factorize(qid)
    if len(numbers) != rows:
        raise DataError(
            f"qid has {len(numbers)} entries for {rows} documents; give one query id per document."
        )
    counts = np.bincount(numbers, minlength=len(names))
    offsets = offsets_from_lengths(counts)
    contiguous = bool(np.all(np.diff(numbers) >= 0)) if rows else True
    return names, offsets, None if contiguous else np.argsort(numbers, kind="stable")


def _factorize(qid: Ids | Iterable[object]) -> tuple[Ids, Ints]:
    """Return the distinct ids by first appearance, and the number of each row's id."""
    if isinstance(qid, Ids):
        keys: np.ndarray[tuple[int], np.dtype[np.generic]] = np.array(list(qid), object)
    else:
        keys = np.asarray(qid if hasattr(qid, "__array__") else list(qid))
    if keys.ndim != 1:
        raise DataError(f"qid must be one-dimensional; got the shape {keys.shape}.")
    if keys.dtype.kind == "f" and not np.isfinite(keys).all():
        raise DataError(f"qid of row {int(np.argmin(np.isfinite(keys)))} is missing or infinite.")
    if not len(keys):
        return Ids.from_values([]), np.empty(0, np.int64)
    if keys.dtype == object:  # np.unique would sort, and mixed types cannot be compared
        names = keys.tolist()
        if set(map(type, names)) != {str}:
            names = _id_texts(names)
        numbers: dict[str, int] = {}
        codes = np.array([numbers.setdefault(name, len(numbers)) for name in names], np.int64)
        return Ids.from_values(numbers), codes
    change = np.flatnonzero(keys[1:] != keys[:-1]) + 1
    starts = np.concatenate([[0], change])
    heads = keys[starts]
    _, first, inverse = np.unique(heads, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    lengths = np.diff(np.concatenate([starts, [len(keys)]]))
    return Ids.from_values(heads[np.sort(first)]), np.repeat(rank[inverse], lengths)


def _id_texts(names: Sequence[object]) -> list[str]:
    """Return ids as text, such that 1 and "1" are the same; refuse a missing one."""
    missing = next((row for row, name in enumerate(names) if is_missing(name)), None)
    if missing is not None:
        raise DataError(f"qid of row {missing} is missing.")
    return [id_text(name) for name in names]


def check_offsets(offsets: Ints, queries: Ids, rows: int, source: str) -> None:
    """Refuse offsets that do not rise from 0 to the number of rows: kernels rely on them."""
    if (
        len(offsets) != len(queries) + 1
        or offsets[0] != 0
        or offsets[-1] != rows
        or (np.diff(offsets) < 0).any()
    ):
        raise DataError(
            f"{source}: the offsets of {len(queries)} queries must be {len(queries) + 1} numbers "
            f"that rise from 0 to the {rows} documents."
        )


def check_query_weights(weights: Floats | None, queries: int, source: str) -> None:
    """Refuse weights of queries that are not one finite number of at least 0 per query."""
    if weights is None:
        return
    if weights.shape != (queries,):
        raise DataError(f"{source}: {weights.size} weights for {queries} queries; give one each.")
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise DataError(f"{source}: the weights of queries must be finite and not negative.")


def duplicate_rows(hashes: Words, offsets: Ints, included: Bools) -> Ints:
    """Return, in order, the rows whose hash equals that of an earlier row of their query.

    Only the rows that `included` marks are compared.
    """
    rows = np.flatnonzero(included)
    query = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))[rows]
    order = np.lexsort((hashes[rows], query))  # stable: an earlier row comes first
    q, h = query[order], hashes[rows][order]
    repeated = np.flatnonzero((q[1:] == q[:-1]) & (h[1:] == h[:-1])) + 1
    duplicates: Ints = np.sort(rows[order[repeated]])
    return duplicates


def query_rows(offsets: Ints, queries: Ints) -> Ints:
    """Return the row numbers of these queries, one query after the other."""
    lengths = offsets[queries + 1] - offsets[queries]
    ends = np.cumsum(lengths)
    rows = np.arange(int(ends[-1]) if len(ends) else 0, dtype=np.int64)
    shift: Ints = np.repeat(offsets[queries] - (ends - lengths), lengths)
    return rows + shift
