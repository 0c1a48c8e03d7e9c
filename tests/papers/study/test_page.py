"""Reports of a study: text, Markdown, and a page with its figures."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from firstpage.papers.study import page
from firstpage.papers.study.page import cell_table, tables
from firstpage.papers.study.run import Reproduction, merge_reproductions, run_study
from firstpage.papers.study.study import (
    Cells,
    Claim,
    Experiment,
    PaperEntry,
    Plot,
    RunPlan,
    TableLayout,
)
from tests.papers import example_study


def run_entries(*entries: PaperEntry, **plan: Any) -> Reproduction:
    return run_study(example_study.study(*entries), entries, RunPlan(**{"seeds": 3, **plan}))


def test_tables_have_x_values_as_rows_and_paper_values() -> None:
    result = run_entries(
        example_study.entry(Experiment(example_study.coin, {"bias": 0.1}))
    ).results[0]
    (table,) = tables(result)
    assert table.head == ["throws", "ours", "paper", "theirs"]
    assert [row[0] for row in table.rows] == ["1", "2"]
    assert [row[2] for row in table.rows] == ["", "0.7"]
    assert all("±" in row[1] for row in table.rows)


def test_entry_without_plot_has_a_row_per_cell() -> None:
    entry = PaperEntry(
        "table1",
        "T",
        "S.",
        [Experiment(example_study.coin, {"bias": 0.1})],
        example_study.better,
        held_equal="x",
    )
    reproduction = run_entries(entry)
    (table,) = tables(reproduction.results[0])
    assert table.head == ["coin", "throws", "paper", "ours", "se"]
    assert len(table.rows) == 4
    head, first, *_ = cell_table([reproduction]).csv().splitlines()
    assert head == "study,entry,coin,throws,paper,ours,se,held_equal"
    assert first.endswith(",x")


def test_text_and_markdown_have_verdicts() -> None:
    reproduction = run_entries(example_study.entry(Experiment(example_study.coin, {"bias": 0.1})))
    text = page.text([reproduction], "firstpage reproduce example")
    assert "  holds: ours is better" in text
    assert "Claims: 1 hold" in text
    assert "command: firstpage reproduce example" in text
    markdown = page.markdown([reproduction], "firstpage reproduce example")
    assert "| ours is better | holds |" in markdown
    assert "The paper: Ours is better." in markdown


def test_every_format_has_what_was_held_equal() -> None:
    def two_claims(cells: Cells) -> list[Claim]:
        (first,) = example_study.better(cells)
        return [first, replace(first, text="another claim", held_equal="nothing <else>.")]

    reproduction = run_entries(
        example_study.entry(Experiment(example_study.coin, {"bias": 0.1}), claims=two_claims)
    )
    assert [c["held_equal"] for c in reproduction.to_dict()["claims"]] == [
        "the coin's <weight>.",
        "nothing <else>.",
    ]
    text = page.text([reproduction], "x")
    assert text.count("held equal: the coin's <weight>.") == 1
    assert text.count("held equal: nothing <else>.") == 1
    markdown = page.markdown([reproduction], "x")
    assert markdown.count("Held equal: the coin's <weight>.") == 1
    assert markdown.count("held equal: nothing <else>.") == 1
    html = page.html([reproduction], "x")
    assert html.count("Held equal: the coin&#x27;s &lt;weight&gt;.") == 1
    assert html.count("Held equal: nothing &lt;else&gt;.") == 1
    assert "% held equal: the coin's <weight>." in page.latex([reproduction], "x")
    assert cell_table([reproduction]).csv().count("the coin's <weight>.") == len(
        reproduction.results[0].cells
    )


def test_page_has_curves_errors_and_provenance() -> None:
    html = page.html(
        [run_entries(example_study.entry(Experiment(example_study.coin, {"bias": 0.1})))],
        "firstpage reproduce x",
    )
    assert html.count('<polyline class="curve') == 2
    assert html.count('<polyline class="error') == 4
    assert 'class="curve c1 dashed"' in html
    assert "Throws &lt;of a coin&gt;" in html
    assert "numpy" in html
    assert "sha256" in html
    assert "http" not in html.replace("http://www.w3.org/2000/svg", "")
    assert "<script" not in html


def test_groups_are_rows_with_error_bars() -> None:
    entry = PaperEntry(
        "figure1",
        "T",
        "S.",
        [Experiment(example_study.coin, {"bias": 0.1})],
        example_study.better,
        [("", Plot("coin", None, "heads"))],
        held_equal="x",
    )
    assert page.html([run_entries(entry)], "x").count('<circle class="mark"') == 4


def test_entry_without_data_names_the_data(tmp_path) -> None:
    entry = example_study.entry(Experiment(example_study.coin, {"bias": 0.1}, dataset="web30k"))
    reproduction = run_entries(entry)
    assert "needs MSLR-WEB30K" in page.html([reproduction], "x")
    assert "1 inconclusive" in page.text([reproduction], "x")
    assert "needs MSLR-WEB30K" in page.markdown([reproduction], "x")


def test_notes_that_differ_in_numbers_only_are_shown_once() -> None:
    reproduction = run_entries(example_study.entry(Experiment(example_study.coin, {"bias": 0.1})))
    noted = replace(reproduction, notes=["10% of it", "12% of it", "something else"])
    assert page.html([noted], "x").count("Warning during the runs") == 2


def test_layout_has_paper_values_below_ours() -> None:
    grid = ("", TableLayout("model", "measure", "All of it"))
    printed = [({"model": "ours", "measure": "N@1"}, 0.25)]
    experiments = [Experiment(example_study.query_values, {"fold": n}) for n in (1, 2)]
    entry = PaperEntry(
        "table1",
        "A table",
        "x",
        experiments,
        example_study.no_claims,
        paper_values=printed,
        layouts=[grid],
        held_equal="x",
    )
    reproduction = run_entries(entry)
    (table,) = tables(reproduction.results[0])
    assert table.head == ["model", "N@1", "N@3"]
    assert [row[0] for row in table.rows] == ["ours", "  paper", "theirs"]
    assert table.rows[1] == ["  paper", "0.2500", ""]
    assert "\u00b1" in table.rows[0][1]
    latex = page.latex([reproduction], "firstpage reproduce x")
    assert "% example/table1: A table" in latex
    assert r"\begin{tabular}{lrr}" in latex
    assert "<td>ours</td>" in page.html([reproduction], "x").split("<details>")[0]


def test_several_papers_on_one_page() -> None:
    one = run_entries(example_study.entry(Experiment(example_study.coin, {"bias": 0.1})))
    several = merge_reproductions([one, one])
    assert several["cells"][0]["entry"] == "example/figure1"
    assert len(several["claims"]) == 2
    assert page.html([one, one], "x").count('<h2 id="example-figure1') == 2
    assert "Claims: 2 hold" in page.text([one, one], "x")
    html = page.html([one], "x")
    assert '<a href="#example-figure1">example/figure1</a>' in html
    assert '<h2 id="example-figure1">example/figure1: Throws' in html


def test_strings_are_last_on_the_x_axis() -> None:
    plot = ("", Plot("model", "k", "heads", log_x=True))
    entry = PaperEntry(
        "figure1",
        "T",
        "S.",
        [Experiment(example_study.depths)],
        example_study.no_claims,
        [plot],
        held_equal="x",
    )
    reproduction = run_entries(entry)
    (table,) = tables(reproduction.results[0])
    assert [row[0] for row in table.rows] == ["1", "10", "full"]
    html = page.html([reproduction], "firstpage reproduce x")
    assert '<text class="tick"' in html
    assert ">full</text>" in html
