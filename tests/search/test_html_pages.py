"""The title and the visible text of HTML pages, also of broken and hostile ones."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firstpage.core.errors import DataError, FirstpageWarning
from firstpage.search.documents import read_documents
from firstpage.search.html_pages import page_values


@pytest.mark.parametrize(
    ("html", "title", "text"),
    [
        ("<title> A \n page </title><p>one</p><p>two</p>", "A page", "one\ntwo"),
        ("plain words", "", "plain words"),
        ("<p>b<b>ol</b>d <i>word</i></p>", "", "bold word"),
        ("a<br>b<br/>c<td>d", "", "a\nb\nc\nd"),
        ("a<script>var x = '<p>no';</script>b<style>p {}</style>c", "", "abc"),
        ("a<noscript><p>no</p></noscript><template><template>x</template>y</template>b", "", "ab"),
        ("<svg><title>icon</title></svg><title>Page</title>x", "Page", "x"),
        ("<title>one</title><title>two</title>x", "one", "twox"),
        ("<head><title>open<body><p>x", "open", "x"),
        ("&lt;b&gt; &eacute;&#233; &nbsp;&copy; AT&T", "", "<b> éé © AT&T"),
        ("<!-- hidden --> seen <!-- <p>open", "", "seen"),
        ("seen <script>open", "", "seen"),
        ("seen <a href='x", "", "seen"),
        ("a <![if IE]>b<![endif]> c", "", "a b c"),
        ("a <![CDATA[x]]> b", "", "a b"),
        ("a <? php ?> b </3 c", "", "a b"),
        ("1 < 2 & 3 > 2", "", "1 < 2 & 3 > 2"),
        ("&unknown; end&", "", "&unknown; end&"),
        ("<div>" * 10_000 + "deep", "", "deep"),
        ("", "", ""),
    ],
)
def test_pages(html: str, title: str, text: str) -> None:
    assert page_values(html, "a.html") == {"title": title, "text": text}


def test_entities_are_not_expanded() -> None:
    bomb = '<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]><p>&b;&b;</p>'
    assert page_values(bomb, "a.html")["text"].endswith("&b;&b;")


def test_a_number_without_end_is_refused() -> None:
    with pytest.raises(DataError, match=r"^a\.html: cannot be parsed as HTML \("):
        page_values("&#" + "9" * 5000 + ";", "a.html")


@pytest.mark.parametrize("part", ["<!--", "<![CDATA[", "<a x='", "</", "<?", "<!", "&", "<title>"])
def test_time_is_linear_in_the_length(part: str) -> None:
    def seconds(length: int) -> float:
        html = part * (length // len(part))
        start = time.process_time()
        page_values(html, "a.html")
        return time.process_time() - start

    seconds(1000)
    assert seconds(160_000) < 40 * min(seconds(20_000) for _ in range(3)) + 0.05


@pytest.mark.parametrize("name", ["iso-8859-1", "Windows-1252", "latin1"])
def test_declared_encodings(name: str, tmp_path: Path) -> None:
    page = f'<meta http-equiv=x content="text/html; charset={name}">café'
    for folder, raw in (
        ("old", page.encode("cp1252")),
        ("new", f"<meta charset='{name}'>é".encode("cp1252")),
    ):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.html").write_bytes(raw)
        (document,) = read_documents([tmp_path / folder])
        assert str(document.values["text"]).endswith("é")


@pytest.mark.parametrize(
    ("declared", "raw", "text"),
    [
        ("gb2312", b"\xe9F", "\u9555"), ("GBK", b"\x81\x30\x84\x36", "\xa5"),
        ("euc-kr", b"\x8cc", "\ub620"), ("shift_jis", b"\x87\x40", "\u2460"),
        ("iso-8859-9", b"\x80\xfd", "\u20ac\u0131"), ("windows-874", b"\x80", "\u20ac"),
        ("big5", b"\x87\x40", "\u43f0"),
    ],
)  # fmt: skip
def test_encodings_are_those_of_browsers(
    declared: str, raw: bytes, text: str, tmp_path: Path
) -> None:
    (tmp_path / "a.html").write_bytes(f"<meta charset={declared}>\n".encode() + raw)
    (document,) = read_documents([tmp_path])
    assert document.values["text"] == text


@pytest.mark.parametrize("declared", ["idna", "utf-8", "no-such", "utf-16", "hex"])
def test_pages_of_unknown_encodings_are_windows_1252(declared: str, tmp_path: Path) -> None:
    (tmp_path / "a.html").write_bytes(f"<meta charset={declared}>\n".encode() + b"\xe9")
    with pytest.warns(
        FirstpageWarning, match="1 of 1 files is not UTF-8, and read as Windows-1252"
    ):
        (document,) = read_documents([tmp_path])
    assert document.values["text"] == "é"


@given(st.text(alphabet="<>/!-[]&#;?='\" abpscriptle\n", max_size=80))
def test_any_markup_gives_a_page(html: str) -> None:
    values = page_values(html, "a.html")
    assert set(values) == {"title", "text"}
    assert all(text == text.strip() for text in values.values())
