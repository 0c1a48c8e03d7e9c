"""Judgments of classic collections: each form is read with a note, or refused with advice."""

from __future__ import annotations

from pathlib import Path

import pytest

import firstpage as fp
from firstpage.core.errors import DataError, FirstpageWarning

EXPECTED = {"1": {"28": 1.0, "35": 1.0}, "2": {"1410": 1.0}}

READ = {
    "CISI.REL": "     1     28\t0\t0.000000\n     1     35\t0\t0.000000\n     2   1410\t0\t0.000000\n",
    "cacm-qrels.text": "01 0028  0 0\n01 0035  0 0\n02 1410  0 0\n",
    "rlv-ass": "1\n28 35\n   /\n2\n 1410\n   /\n",
    "rlv-ass-crlf": "1\r\n28\r\n35\r\n/\r\n2\r\n1410\r\n/\r\n",
}


@pytest.mark.parametrize("name", READ)
def test_relevant_documents_have_the_grade_1(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(READ[name])
    with pytest.warns(FirstpageWarning, match="3 documents of 2 queries have the grade 1") as notes:
        assert fp.read_qrels(tmp_path / name).to_dict() == EXPECTED
    assert len(notes) == 1


def test_a_document_that_is_listed_twice_counts_once(tmp_path: Path) -> None:
    (tmp_path / "q.rel").write_text("1 28 0 0\n1 28 0 0\n")
    with pytest.warns(FirstpageWarning):
        assert fp.read_qrels(tmp_path / "q.rel").to_dict() == {"1": {"28": 1.0}}


def test_beyond_the_first_lines(tmp_path: Path) -> None:
    lines = "".join(f"{q} {d} 0 0.000\n" for q in range(1, 60) for d in range(1, 50))
    (tmp_path / "q.rel").write_text(lines)
    with pytest.warns(FirstpageWarning, match="2,891 documents of 59 queries"):
        qrels = fp.read_qrels(tmp_path / "q.rel")
    assert len(qrels) == 59
    assert qrels.labels.min() == 1.0
    (tmp_path / "q.rel").write_text(f"{lines}60 0 d7 1\n")  # so it is TREC's after all
    trec = fp.read_qrels(tmp_path / "q.rel")
    assert list(trec.queries)[-1] == "60"
    assert (list(trec.docids)[-1], trec.labels[-1]) == ("d7", 1.0)
    with pytest.raises(DataError, match="document '0' occurs twice in query '1'"):
        trec.to_dict()


@pytest.mark.parametrize(
    "text",
    [
        "1 0 13 1\n1 0 14 0\n",
        "1 0 0 1\n2 0 0 0\n",
        "1 0 0 0\n",
        "q1 7 0 0\nq2 8 0 0\n",
        "1 0 a 0\n",
    ],
    ids=["MED.REL", "a document 0", "only 0", "ids that are not numbers", "a grade 0"],
)
def test_trec_files_are_read_without_a_note(text: str, tmp_path: Path) -> None:
    (tmp_path / "q.rel").write_text(text)
    table = fp.read_qrels(tmp_path / "q.rel").to_dict()
    expected: dict[str, dict[str, float]] = {}
    for line in text.splitlines():
        query, _, document, grade = line.split()
        expected.setdefault(query, {})[document] = float(grade)
    assert table == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "1 184 2 \n1 486 -1\n",
            r"3 fields instead of 4: .* awk '\{print \$1, 0, \$2, \$3\}'; lar",
        ),
        ("1 184 2 \n1 486 -1\n", r"write 5 - \$3 for Cranfield's codes, of which 1 is the best"),
        ("1 184\n", r"2 fields instead of 4: .* awk '\{print \$1, 0, \$2, 1\}'"),
        ("1\n28 d5\n/\n", ":2: 'd5' is not the number of a query or document"),
    ],
)
def test_other_forms_are_refused_with_advice(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "q.rel").write_text(text)
    with pytest.raises(DataError, match=message) as caught:
        fp.read_qrels(tmp_path / "q.rel")
    assert "\n" not in str(caught.value)
