"""Files of the classic collections: documents and queries of SMART and NPL."""

from __future__ import annotations

from pathlib import Path

import pytest

from firstpage.core.errors import DataError, FirstpageWarning
from firstpage.search.documents import read_documents
from firstpage.search.queries import read_queries

CACM = """.I 1
.T
Preliminary Report-International Algebraic Language
.B
CACM December, 1958
.A
Perlis, A. J.
Samelson,K.
.N
CA581203 JB March 22, 1978  8:28 PM
.X
100\t5\t1
123\t5\t1
.I 2
.T
Extraction of Roots by Repeated Subtractions
.W
A method for digital computers.
.K
roots, subtraction
.C
5.12 5.13
"""
CISI_QUERIES = """.I 1
.W
What problems and concerns are there in making up
descriptive titles?
.I 58
.T
Automatic Indexing
.A
(Borko, H.)
.W
An attempt to index automatically.
.B
(JASIS, 1964)
"""
CACM_QUERIES = """.I 1
.W
 What articles exist which deal with TSS?
.N
 1. Richard Alexander, Comp Serv, Langmuir Lab (TSS)

"""
NPL = """1
compact memories have flexible capacities  a digital data
storage system with capacity up to bits
   /
2
an electronic analogue computer
   /
"""


def test_sections_of_smart(tmp_path: Path) -> None:
    (tmp_path / "cacm.all").write_text(CACM)
    with pytest.warns(FirstpageWarning, match=r"cross references \(\.X\) are ignored"):
        first, second = read_documents(tmp_path / "cacm.all")
    assert first.values == {
        "title": "Preliminary Report-International Algebraic Language",
        "bibliography": "CACM December, 1958",
        "author": "Perlis, A. J.\nSamelson,K.",
        "notes": "CA581203 JB March 22, 1978  8:28 PM",
    }
    assert second.values == {
        "title": "Extraction of Roots by Repeated Subtractions",
        "text": "A method for digital computers.",
        "keywords": "roots, subtraction",
        "categories": "5.12 5.13",
    }


@pytest.mark.parametrize(
    ("text", "expected", "note"),
    [
        (
            CISI_QUERIES,
            {
                "1": "What problems and concerns are there in making up\ndescriptive titles?",
                "58": "An attempt to index automatically.",
            },
            "only 'text' is the query; not read: 'title', 'author', 'bibliography'",
        ),
        (CACM_QUERIES, {"1": "What articles exist which deal with TSS?"}, "not read: 'notes'"),
    ],
    ids=["CISI.QRY", "CACM query.text"],
)
def test_queries_of_smart(text: str, expected: dict[str, str], note: str, tmp_path: Path) -> None:
    (tmp_path / "a.qry").write_text(text)
    with pytest.warns(FirstpageWarning, match=note):
        assert dict(read_queries(tmp_path / "a.qry")) == expected


def test_npl(tmp_path: Path) -> None:
    (tmp_path / "doc-text").write_text(NPL)
    first, second = read_documents(tmp_path / "doc-text")
    assert (first.id, second.id) == ("1", "2")
    assert str(first.values["text"]).endswith(
        "a digital data\nstorage system with capacity up to bits"
    )
    queries = read_queries(tmp_path / "doc-text")
    assert dict(queries)["2"] == "an electronic analogue computer"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1\nabc\n", "doc-text:1: the record has no end; add a line of '/'"),
        ("abc\n/\n", "doc-text:1: 'abc' is not the number of a record"),
        ("1\na\n/\n/\n", "doc-text:4: '/' ends no record"),
    ],
)
def test_damaged_npl(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "doc-text").write_text(text)
    with pytest.raises(DataError, match=message):
        list(read_documents(tmp_path / "doc-text", "npl"))
