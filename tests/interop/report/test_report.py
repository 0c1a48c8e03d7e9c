"""Tables, charts, pages and published results."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import firstpage as fp
from firstpage.core import charts
from firstpage.core.charts import curves
from firstpage.core.table import LATEX, Table
from firstpage.interop.report.html_page import figure, page
from firstpage.interop.report.rankers import read_published
from firstpage.interop.report.results import render

TABLE = Table(
    ["name", "a", "b"],
    [["x|y", "1.5", "2"], ["50 % & co_1", "10", "3"]],
    bold=frozenset({(1, 1)}),
    bold_legend="best ± 0",
    bold_mark="◂",
)


def test_text_table() -> None:
    assert TABLE.text().splitlines() == [
        "name           a  b",
        "───────────  ───  ─",
        "x|y          1.5  2",
        "50 % & co_1  10◂  3",
        "◂ best ± 0",
    ]


def test_markdown_table() -> None:
    assert TABLE.markdown().splitlines()[1:] == [
        "| --- | ---: | ---: |",
        "| x\\|y | 1.5 | 2 |",
        "| 50 % & co_1 | **10** | 3 |",
        "",
        "bold: best ± 0",
    ]


def test_latex_escapes() -> None:
    assert r"50 \% \& co\_1 & \textbf{10} & 3 \\" in TABLE.latex()
    assert r"\begin{tabular}{lrr}" in TABLE.latex()
    assert TABLE.latex().endswith(r"\par\smallskip{\footnotesize bold: best $\pm$ 0\par}")


def test_latex_escapes_symbols_and_names_the_package() -> None:
    table = Table(["a"], [["0.48 ± 0.01 ▼"], ["−1 < 2 †"]], note="▲ ▼: other than b.")
    assert table.latex().splitlines() == [
        r"% needs \usepackage{booktabs}",
        r"% needs \usepackage{amssymb}",
        r"\begin{tabular}{l}",
        r"\toprule",
        r"a \\",
        r"\midrule",
        r"0.48 $\pm$ 0.01 $\blacktriangledown$ \\",
        r"$-$1 $<$ 2 $\dagger$ \\",
        r"\bottomrule",
        r"\end{tabular}",
        r"\par\smallskip{\footnotesize $\blacktriangle$ $\blacktriangledown$: other than b.\par}",
    ]
    assert table.latex().isascii()


def test_brackets_after_a_line_break_of_latex_are_protected() -> None:
    rows = Table(["system", "AP"], [["[x]", "1"], ["*", "2"], ["a[b]", "3"]]).latex()
    assert "{}[x] & 1" in rows
    assert "{}* & 2" in rows
    assert "\na[b] & 3" in rows


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs LaTeX")
def test_tables_compile_in_plain_latex(tmp_path) -> None:
    symbols = Table(
        ["a|b"], [[letter] for letter in LATEX], "100 % of it", "▲ note", bold_legend="b"
    )
    systems = {"bm_25 & α #1": [2, 1, 2, 1], "50% ~ {x}^2": [1, 2, 2, 1]}
    compared = fp.compare(systems, [1, 0, 1, 0], qid=[1, 1, 2, 2], measures="RR", rounds=100)
    packages = r"\usepackage{booktabs}\usepackage{amssymb}"
    body = "\n".join(
        [symbols.latex(), compared.to_latex("A & B", "tab:one"), render(compared, "latex")]
    )
    (tmp_path / "x.tex").write_text(
        rf"\documentclass{{article}}{packages}\begin{{document}}{body}" + "\n" + r"\end{document}"
    )
    options = ["-interaction=nonstopmode", "-halt-on-error"]
    done = subprocess.run(["pdflatex", *options, "x.tex"], cwd=tmp_path, capture_output=True)
    assert done.returncode == 0, done.stdout[-2000:]


def test_text_without_a_mark_shows_no_bold() -> None:
    table = Table(["a"], [["1"]], bold=frozenset({(0, 0)}), bold_legend="best")
    assert table.text().splitlines()[1:] == ["─", "1"]


def test_csv_table_quotes_cells() -> None:
    assert Table(["a"], [['say "hi", you']]).csv() == 'a\n"say ""hi"", you"'


class Checker(HTMLParser):
    """Checks that tags are closed; collects what could run or load something."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.active: list[str] = []

    def handle_starttag(self, tag: str, attrs) -> None:
        if tag in ("script", "iframe", "object", "embed", "img", "link", "form"):
            self.active.append(tag)
        own = {("href", value) for _, value in attrs if str(value).startswith("#")}
        self.active += [
            n
            for n, v in attrs
            if n.startswith("on") or (n in ("src", "href") and (n, v) not in own)
        ]
        if tag not in ("meta", "line", "circle", "rect") or tag == "circle":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs) -> None:
        return

    def handle_endtag(self, tag: str) -> None:
        while self.open and self.open[-1] in ("line", "meta"):
            self.open.pop()
        if tag != "rect":
            assert self.open.pop() == tag


HOSTILE = '<script>alert(1)</script>"><img src=x onerror=alert(1)>'


def test_figures_scroll_on_phones_by_keyboard() -> None:
    html = page("Title", "", [("Figures", [figure("<svg></svg>", "a < b")])])
    assert '<figure tabindex="0"><svg></svg><figcaption>a &lt; b</figcaption></figure>' in html
    assert "(max-width: 42rem) { figure { overflow-x: auto; }" in html


def test_pages_are_well_formed_and_escape_names() -> None:
    rng = np.random.default_rng(0)
    labels, qid = rng.integers(0, 2, 60), [f"{HOSTILE}{i // 6}" for i in range(60)]
    comparison = fp.compare(
        {HOSTILE: rng.random(60), "b": rng.random(60), "c": labels},
        labels,
        qid=qid,
        measures=["AP", "RR"],
        rounds=500,
    )
    for html in (
        render(comparison, "html", HOSTILE),
        render(comparison.evaluations[0], "html", HOSTILE),
    ):
        checker = Checker()
        checker.feed(html)
        assert checker.active == []
        assert checker.open == []
        assert "<script>" not in html


def test_drawings_of_degenerate_data_are_finite() -> None:
    values = np.array([0.0, 0.0, 1.0, 0.25])
    for svg in (
        charts.histogram(values, "h"),
        charts.histogram(np.ones(5), "constant"),
        charts.intervals([("a", 0.5, 0.5, 0.5)], "a single point"),
        charts.intervals([("a" * 90, -1e-9, -1, 2), ("b", 0.1, 0.1, 0.1)], "d", zero=True),
        charts.outcomes([("x", 3, 0, 1), ("none", 0, 0, 0)], "w"),
    ):
        assert "nan" not in svg
        assert "inf" not in svg
        assert svg.startswith("<svg")
    assert page("t", "l", []).startswith("<!doctype html>")


def test_contents_list_the_sections_once_each() -> None:
    sections = [("Means", ["<p>a</p>"]), ("P@5", []), ("P(5", []), ("A & B", ["<table></table>"])]
    html = page("t", "l", sections)
    assert re.findall('<a href="#([^"]*)">([^<]*)</a>', html) == [
        ("means", "Means"),
        ("p-5", "P@5"),
        ("p-5-2", "P(5"),
        ("a---b", "A &amp; B"),
    ]
    assert re.findall('<h2 id="([^"]*)">', html) == ["means", "p-5", "p-5-2", "a---b"]
    assert "Contents" not in page("t", "l", sections[:2])


def test_ticks_have_no_negative_zero() -> None:
    assert str(charts.ticks(-0.4, 3.0)[0]) == "0.0"


def test_the_tick_at_zero_is_exact() -> None:
    assert charts.ticks(-1.04, 0.04) == pytest.approx([-1.0, -0.8, -0.6, -0.4, -0.2, 0.0])
    assert charts.ticks(-1.04, 0.04)[-1] == 0.0


def test_curves_with_bands_and_dashes() -> None:
    series = {"a": [(1.0, 0.5), (2.0, 0.7)], "b": [(1.0, 0.4), (2.0, 0.4)]}
    plain = curves(series, "t", "x", "y")
    assert plain.count("<polyline") == 2
    assert "dashed" not in plain
    chart = curves(series, "t", "x", "y", {"a": [(0.4, 0.6), (0.7, 0.7)]}, ["b"])
    assert chart.count('class="error c0"') == 2
    assert 'class="curve c1 dashed"' in chart
    bar = chart.split('class="error c0" fill="none" points="')[1].split('"')[0]
    (x1, y1), (x2, y2) = (point.split(",") for point in bar.split())
    assert x1 == x2
    assert float(y1) > float(y2)  # from 0.4 up to 0.6


def test_logarithmic_axis_and_tick_labels() -> None:
    series = {"a": [(1.0, 0.5), (10.0, 0.7), (100.0, 0.6), (200.0, 0.1)]}
    chart = curves(series, "t", "k", "y", log=True, tick_labels={200.0: "full"})
    xs = [float(part.split('"')[0]) for part in chart.split('cx="')[1:]]
    assert xs[1] - xs[0] == pytest.approx(xs[2] - xs[1], abs=0.2)
    assert "<title>a, full: 0.100</title>" in chart
    labels = [part.split("<")[0] for part in chart.split('text-anchor="middle">')[1:]]
    assert labels == ["1", "2", "5", "10", "20", "50", "100", "full"]


def test_json_has_no_infinities() -> None:
    from firstpage.interop.report.results import render

    comparison = fp.compare(
        {"a": [2, 1] * 3, "b": [1, 2] * 3}, [1, 0] * 3, qid=[1, 1, 2, 2, 3, 3], measures="RR"
    )
    assert comparison.differences[0].effect == -np.inf
    assert json.loads(render(comparison, "json"))["differences"][0]["effect"] is None
    with pytest.raises(fp.MeasureError, match="DCG overflows"):
        fp.evaluate([1], [2000], qid=[1], measures="DCG")


def test_published_results_are_read_from_wide_and_long_tables(tmp_path: Path) -> None:
    wide = tmp_path / "wide.csv"
    wide.write_text("method,NDCG@10,MAP\nBM25,0.31,0.22\n\nLM,0.3\n")
    assert read_published(wide) == {
        "BM25": {"ndcg@10": "0.31", "ap": "0.22"},
        "LM": {"ndcg@10": "0.3"},
    }
    long = tmp_path / "long.csv"
    long.write_text(
        "Algorithm,Table,Trial,Measure,Value\nBM25,test,1,P@1,0.1\nBM25,test,Average,P@1,0.2\n"
    )
    assert read_published(long) == {"BM25": {"p@1": "0.2"}}
    assert read_published(tmp_path) == read_published(long) | read_published(wide)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("method,AP\nBM25,0.2,0.3\n", "bad.csv:2: has more cells than the header."),
        ("method,AP\nBM25,0.2\n,0.3\n", "bad.csv:3: a line must have a method, then a value"),
        ("method\nBM25\n", "bad.csv:2: a line must have a method, then a value"),
        ("algorithm,trial,measure,value\nBM25,average,AP\n", "bad.csv:2: lacks value."),
        ("method,AP\n", "bad.csv: contains no results"),
    ],
)
def test_invalid_tables_of_published_results_raise_with_the_line(
    tmp_path: Path, text: str, message: str
) -> None:
    (tmp_path / "bad.csv").write_text(text)
    with pytest.raises(fp.FirstpageError, match=re.escape(message)):
        read_published(tmp_path / "bad.csv")
