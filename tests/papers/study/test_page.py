"""What people see of a study: text, Markdown, and a page with its figures."""

from __future__ import annotations

from dataclasses import replace

from firstpage.papers.study import page
from firstpage.papers.study.page import every_cell, tables
from firstpage.papers.study.run import Reproduction, merged, reproduce
from firstpage.papers.study.study import Cells, Claim, Drawing, Entry, Grid, Plan, Work
from tests.papers import works


def found(*entries: Entry, **plan: int) -> Reproduction:
    return reproduce(works.study(*entries), entries, Plan(**{"seeds": 3, **plan}))


def test_tables_have_the_axis_downward_and_the_paper_beside() -> None:
    outcome = found(works.entry(Work(works.coin, {"bias": 0.1}))).outcomes[0]
    (table,) = tables(outcome)
    assert table.head == ["throws", "ours", "paper", "theirs"]
    assert [row[0] for row in table.rows] == ["1", "2"]
    assert [row[2] for row in table.rows] == ["", "0.7"]
    assert all("±" in row[1] for row in table.rows)


def test_without_drawing_a_cell_is_a_row() -> None:
    plain = Entry("table1", "T", "S.", [Work(works.coin, {"bias": 0.1})], works.better,
                  held_equal="x")  # fmt: skip
    done = found(plain)
    (table,) = tables(done.outcomes[0])
    assert table.head == ["coin", "throws", "paper", "ours", "se"]
    assert len(table.rows) == 4
    head, first, *_ = every_cell([done]).csv().splitlines()
    assert head == "study,entry,coin,throws,paper,ours,se,held equal"
    assert first.endswith(",x")


def test_text_and_markdown_tell_the_verdict() -> None:
    done = found(works.entry(Work(works.coin, {"bias": 0.1})))
    told = page.text([done], "firstpage reproduce made-up")
    assert "  holds: ours is better" in told
    assert "Claims: 1 hold" in told
    assert "command: firstpage reproduce made-up" in told
    marked = page.markdown([done], "firstpage reproduce made-up")
    assert "| ours is better | holds |" in marked
    assert "The paper: Ours is better." in marked


def test_every_format_says_what_was_held_equal() -> None:
    def own(cells: Cells) -> list[Claim]:
        (first,) = works.better(cells)
        return [first, replace(first, text="and so", held_equal="nothing <else>.")]

    done = found(works.entry(Work(works.coin, {"bias": 0.1}), claims=own))
    assert [c["held_equal"] for c in done.to_dict()["claims"]] == [
        "the coin's <weight>.", "nothing <else>.",
    ]  # fmt: skip
    told = page.text([done], "x")
    assert told.count("held equal: the coin's <weight>.") == 1
    assert told.count("held equal: nothing <else>.") == 1
    marked = page.markdown([done], "x")
    assert marked.count("Held equal: the coin's <weight>.") == 1
    assert marked.count("held equal: nothing <else>.") == 1
    whole = page.html([done], "x")
    assert whole.count("Held equal: the coin&#x27;s &lt;weight&gt;.") == 1
    assert whole.count("Held equal: nothing &lt;else&gt;.") == 1
    assert "% held equal: the coin's <weight>." in page.latex([done], "x")
    assert every_cell([done]).csv().count("the coin's <weight>.") == len(done.outcomes[0].cells)


def test_the_page_has_curves_errors_and_provenance() -> None:
    whole = page.html(
        [found(works.entry(Work(works.coin, {"bias": 0.1})))], "firstpage reproduce x"
    )
    assert whole.count('<polyline class="curve') == 2
    assert whole.count('<polyline class="error') == 4
    assert 'class="curve c1 dashed"' in whole
    assert "Throws &lt;of a coin&gt;" in whole
    assert "numpy" in whole
    assert "sha256" in whole
    assert "http" not in whole.replace("http://www.w3.org/2000/svg", "")
    assert "<script" not in whole


def test_groups_are_rows_with_bars() -> None:
    groups = Entry(
        "figure1", "T", "S.", [Work(works.coin, {"bias": 0.1})], works.better,
        [("", Drawing("coin", None, "heads"))], held_equal="x",
    )  # fmt: skip
    assert page.html([found(groups)], "x").count('<circle class="mark"') == 4


def test_an_entry_without_data_says_so(tmp_path) -> None:
    away = works.entry(Work(works.coin, {"bias": 0.1}, needs="web30k"))
    done = found(away)
    assert "needs MSLR-WEB30K" in page.html([done], "x")
    assert "1 cannot be tested" in page.text([done], "x")
    assert "needs MSLR-WEB30K" in page.markdown([done], "x")


def test_notes_that_differ_in_numbers_are_told_once() -> None:
    done = found(works.entry(Work(works.coin, {"bias": 0.1})))
    told = replace(done, notes=["10% of it", "12% of it", "something else"])
    assert page.html([told], "x").count("Noted on the way") == 2


def test_a_grid_is_as_the_paper_prints_it() -> None:
    grid = ("", Grid("model", "measure", "All of it"))
    said = [({"model": "ours", "measure": "N@1"}, 0.25)]
    works_ = [Work(works.asked, {"fold": n}) for n in (1, 2)]
    entry = Entry("table1", "A table", "x", works_, works.nothing, paper=said, grids=[grid],
                  held_equal="x")  # fmt: skip
    done = found(entry)
    (table,) = tables(done.outcomes[0])
    assert table.head == ["model", "N@1", "N@3"]
    assert [row[0] for row in table.rows] == ["ours", "  paper", "theirs"]
    assert table.rows[1] == ["  paper", "0.2500", ""]
    assert "\u00b1" in table.rows[0][1]
    written = page.latex([done], "firstpage reproduce x")
    assert "% made-up/table1: A table" in written
    assert r"\begin{tabular}{lrr}" in written
    assert "<td>ours</td>" in page.html([done], "x").split("<details>")[0]


def test_several_papers_on_one_page() -> None:
    one = found(works.entry(Work(works.coin, {"bias": 0.1})))
    several = merged([one, one])
    assert several["cells"][0]["entry"] == "made-up/figure1"
    assert len(several["claims"]) == 2
    assert page.html([one, one], "x").count("made-up/figure1: Throws") == 2
    assert "Claims: 2 hold" in page.text([one, one], "x")
    whole = page.html([one], "x")
    assert '<a href="#made-up-figure1">made-up/figure1</a>' in whole
    assert '<h2 id="made-up-figure1">made-up/figure1: Throws' in whole


def test_words_along_an_axis_come_last() -> None:
    drawing = ("", Drawing("model", "k", "heads", log=True))
    deep = Entry("figure1", "T", "S.", [Work(works.depths)], works.nothing, [drawing],
                 held_equal="x")  # fmt: skip
    done = found(deep)
    (table,) = tables(done.outcomes[0])
    assert [row[0] for row in table.rows] == ["1", "10", "full"]
    whole = page.html([done], "firstpage reproduce x")
    assert '<text class="tick"' in whole
    assert ">full</text>" in whole
