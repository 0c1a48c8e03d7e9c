"""What holds pages to their blocks fails where a page is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.pages import blocks, difference, outcomes, unknown_options
from tests.docs.refresh import refreshed


def problems(page: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.chdir(folder)
    return [each.problem for block in blocks(page) for each in outcomes(block) if each.problem]


def python(code: str, shown: str | None = None, note: str = "") -> str:
    output = "" if shown is None else f"\n```text\n{shown}\n```\n"
    return f"Some prose.\n\n{note}```python\n{code}\n```\n{output}\nMore prose.\n"


def console(lines: str, note: str = "") -> str:
    return f"{note}```console\n{lines}\n```\n"


LIST = "$ firstpage measures"
SYNTHESIZE = "$ firstpage synthesize made.txt --queries 3"


@pytest.mark.parametrize(
    "page",
    [
        python("print('seven')", "seven"),
        python("print(1 / 3, 7)", "0.333 7"),
        python("print(1 / 3, 7)", "0.332 7"),
        python("print(1 / 3, 7)", "0.34 7", "<!-- tolerance: 0.01 -->\n"),
        python("print('took 3.5 s')", "took ... s"),
        python("assert True"),
        python("fp.ListMLE(device='cuda').fit(train)", note="<!-- not run: needs a GPU -->\n"),
        console("$ make test"),
        console(f"{SYNTHESIZE}\nwrote ..."),
        console("$ firstpage theory --list -o made.txt"),
        console(f"{LIST}\n..."),
        console("$ firstpage serve model.json --port 0", "<!-- not run: a server -->\n"),
        console("$ curl localhost\nhello", "<!-- not run: needs a server -->\n"),
        "```json\n{}\n```\n",
    ],
)
def test_a_page_that_is_right(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert problems(page, tmp_path, monkeypatch) == []


@pytest.mark.parametrize(
    ("page", "message"),
    [
        (python("print('seven')", "eight"), "the page shows\neight"),
        (python("print('seven')"), "does not show what it prints:\nseven"),
        (python("pass", "seven"), "the page shows\nseven"),
        (python("print(1 / 3, 7)", "0.330 7"), "0.33333"),
        (python("print(1 / 3, 7)", "0.333 8"), "0.33333"),
        (python("print(1 / 3, 7)", "0.333"), "0.33333"),
        (python("print('a b c')", "a ... d"), "a b c"),
        (python("seven = 7"), "asserts nothing"),
        (python("fp.ListMEL()", note="<!-- not run: needs a GPU -->\n"), "no fp.ListMEL"),
        (console("$ make tset"), "no such target"),
        (console(SYNTHESIZE.replace("--queries", "--querys")), "No such option '--querys'"),
        (console("$ firstpage measurs\n..."), "No such command 'measurs'"),
        (console("$ firstpage train"), "Missing argument"),
        (console("$ firstpage synthesize --queries many"), "'many' is not a valid integer"),
        (
            console("$ firstpage serve model.json --prt 0", "<!-- not run: a server -->\n"),
            "No such option '--prt'",
        ),
        (console(LIST), "does not show what it prints"),
        (console(f"{LIST}\nnothing of the kind"), "nothing of the kind"),
        (console("$ firstpage describe missing.txt\n..."), "it ends with 1"),
        (console("$ curl localhost"), "cannot be run here"),
        ("```text\n$ firstpage measures\n```\n", "not `console`"),
    ],
)
def test_a_page_that_is_wrong(
    page: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (problem,) = problems(page, tmp_path, monkeypatch)
    assert message in problem


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("[0.  0.61 1. ]", "[0.0012  0.6149  0.9991]", True),
        ("[0.  0.61 1. ]", "[0.0212  0.6149  0.9991]", False),
        ("0.5 90.1%", "0.4812 90.3%", True),
        ("0.5 90.1%", "0.4788 90.3%", False),
        ("p = 2.00e-05", "p = 1.9998e-05", True),
        ("p = 2.00e-05", "p = 1.9e-05", False),
        ("d19 NDCG@10", "d18 NDCG@10", False),
        ("NDCG@10 0.9", "NDCG@5 0.9", False),
        ("-0.0000", "0.0000", True),
        ("a  0.5  ███\n──", "a 0.5 ██\n─────", True),
        ("... 4 ... 6", "3 4 5 6", True),
        ("... 4 ... 6", "3 5 4 6 7", False),
        ("4 ... 4", "4", False),
    ],
)
def test_words_are_exact_and_numbers_within_bounds(shown: str, printed: str, same: bool) -> None:
    assert (difference(shown, printed) == "") is same


def test_a_command_line_in_prose() -> None:
    assert unknown_options(["label", "serve", "--open", "--prt", "0"]) == ["--prt"]
    assert unknown_options(["label", "serve"]) == unknown_options(["label"]) == []


def test_output_is_written_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (block,) = blocks(python("print(1 / 3)", "0.5"))
    assert refreshed(block, list(outcomes(block))).endswith("```text\n0.333\n```")
    (block,) = blocks(console(f"{SYNTHESIZE}\nwrong"))
    (fresh,) = blocks(refreshed(block, list(outcomes(block))))
    assert not any(each.problem for each in outcomes(fresh))
