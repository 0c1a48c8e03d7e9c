"""Judgments of the classic collections (CISI, CACM, NPL), as lines of TREC qrels.

- SMART: lines of `query document 0 0`, one per relevant document (CISI.REL, CACM's qrels.text).
- NPL: the number of a query, the numbers of its relevant documents, and a line of `/` (rlv-ass).

MED.REL is TREC's format already.  Lines of query, document and code, such as Cranfield's, are
refused: whether a large code is good is not in the file.
"""

from __future__ import annotations

from itertools import islice

from firstpage.core import DataError, location

HEAD_BYTES = 4096  # that decide about the format
Pairs = list[tuple[int, int]]


def as_trec(raw: bytes, name: str) -> tuple[bytes, str]:
    """Return judgments as lines of TREC, and a note if they were in a classic format, else "".

    Numbers lose leading zeros, since CACM's queries are 1 in one file and 01 in the other.
    """
    head = raw[:HEAD_BYTES].splitlines()[: -1 if len(raw) > HEAD_BYTES else None]
    rows = [words for line in head if (words := line.split())]
    if rows and all(map(_is_smart, rows)):
        lines = [words for line in raw.splitlines() if (words := line.split())]
        if not all(map(_is_smart, lines)):
            return raw, ""
        pairs = [(int(words[0]), int(words[1])) for words in lines]
        what = "lines of query, relevant document, 0 and 0 (SMART)"
    elif rows and len(rows[0]) == 1 and rows[0][0].isdigit() and [b"/"] in rows:
        pairs, what = _npl_pairs(raw, name), "the relevant documents of each query up to '/' (NPL)"
    else:
        return raw, ""
    queries = len({query for query, _ in pairs})
    lines_of_trec = b"".join(b"%d 0 %d 1\n" % pair for pair in dict.fromkeys(pairs))
    return lines_of_trec, (
        f"{name}: read as {what}: {len(pairs):,} documents of {queries:,} queries have the grade 1."
    )


def _is_smart(words: list[bytes]) -> bool:
    """Return whether a line is query, document and two zeros.

    In TREC's format this would be a judgment of the document `0`, without a grade.
    """
    return (
        len(words) == 4
        and words[0].isdigit()
        and words[1].isdigit()
        and words[1].strip(b"0") != b""  # the iteration of TREC's format is usually 0
        and words[2] == b"0"
        and words[3].replace(b".", b"", 1).strip(b"0") == b""
    )


def _npl_pairs(raw: bytes, name: str) -> Pairs:
    """Return the queries and relevant documents of a file of NPL."""
    pairs: Pairs = []
    query = -1
    lines = enumerate(raw.splitlines(), 1)
    for number, line in lines:
        words = line.split()
        if words == [b"/"]:
            query = -1
            continue
        bad = next((word for word in words if not word.isdigit()), None)
        if bad is not None:
            shown = bad[:60].decode("utf-8", "replace")
            raise DataError(
                f"{location(name, number)}: {shown!r} is not the number of a query or document; a "
                "file of NPL has the number of a query, those of its documents, and a line of '/'."
            )
        for word in islice(words, query < 0, None):
            pairs.append((query if query >= 0 else int(words[0]), int(word)))
        if words and query < 0:
            query = int(words[0])
    return pairs
