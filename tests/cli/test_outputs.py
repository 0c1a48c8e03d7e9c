"""Every file that a command writes is named for what it holds, or refused before the work."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import firstpage as fp
from firstpage.cli import app
from firstpage.cli.outputs import DATA, FOREIGN, SUFFIXES, OutputFile, suffixes
from firstpage.data.formats.trec import to_run

EVERY = sorted({*FOREIGN, *(s for name in (*DATA, *SUFFIXES) for s in suffixes(name))})
WRITTEN = ("output", "html", "target", "folder", "per_query", "trials_to", "checkpoint")
READ = {"crossval": {"folder"}}  # folders that are read, not written


def commands(group: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    if isinstance(group, click.Group):
        for name, command in group.commands.items():
            yield from commands(command, (*path, name))
    else:
        yield path


def command_at(path: tuple[str, ...]) -> click.Command:
    found: click.Command = app
    for name in path:
        assert isinstance(found, click.Group)
        found = found.commands[name]
    return found


@pytest.mark.parametrize("path", list(commands(app)), ids=" ".join)
def test_a_name_that_says_another_format_is_refused(path: tuple[str, ...], run) -> None:
    command = command_at(path)
    for param in command.params:
        help_text = getattr(param, "help", None) or ""
        named = param.name in WRITTEN and param.name not in READ.get(path[0], ())
        if not isinstance(param.type, click.Path) or not (named or "rite " in help_text):
            assert not isinstance(param.type, OutputFile)
            continue
        assert isinstance(param.type, OutputFile), param.name
        allowed = {s for name in param.type.formats for s in suffixes(name)}
        for suffix in EVERY:
            for name in (f"o{suffix}", f"o{suffix}.gz"):
                if suffix in allowed:
                    assert param.type.convert(name, param, None) == Path(name)
                else:
                    with pytest.raises(click.UsageError, match="name must"):
                        param.type.convert(name, param, None)
        if isinstance(param, click.Option):
            done = run(*path, param.opts[0], "o.pdf")
        else:
            others = [p for p in command.params if isinstance(p, click.Argument)]
            done = run(*path, *("o.pdf" if p is param else "x" for p in others))
        assert done.returncode == 2
        assert "o.pdf: " in done.stderr


MADE = fp.Synthetic(queries=4, docs=4, features=2, grades=3).dataset()


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["evaluate", "d.txt", "--scores", "s", "--json", "-o", "o.csv"], "-o o.csv: the name must end in .json."),
        (["evaluate", "d.txt", "--scores", "s", "-f", "csv", "-o", "o.json"], "must end in .csv."),
        (["compare", "d.txt", "--scores", "s", "--scores", "s", "--json", "-o", "o.md"], "must end in .json."),
        (["crossval", "folds", "RankNet", "-f", "latex", "-o", "o.md"], "must end in .tex."),
        (["explain", "m.json", "--json", "-o", "o.html"], "must end in .json."),
        (["rank", "m.json", "d.txt", "-o", "o.csv"], "-o o.csv: the name must end in .txt or .run."),
        (["rank", "m.json", "d.txt", "--trec", "-o", "o.scores"], "must end in .run."),
        (["train", "RankNet", "d.txt", "-o", "o.txt"], "must end in .json."),
        (["aggregate", "a.run", "a.run", "-o", "o.scores"], "must end in .run."),
        (["aggregate", "--data", "d.txt", "--scores", "s", "--scores", "s", "-o", "o.run"], "must end in .txt."),
        (["convert", "d.txt", "o.csv", "--to", "parquet"], "TARGET o.csv: the name must end in .parquet."),
        (["import", "quepid", "q.csv", "-o", "o.csv"], "must end in .qrels."),
        (["import", "ranklib", "m.txt", "-o", "o.txt"], "must end in .json."),
        (["import", "clicks", "c.csv", "-o", "o.qrels"], "must end in .csv."),
        (["label", "export", "p", "--format", "jsonl", "-o", "o.qrels"], "must end in .jsonl."),
        (["label", "stats", "p", "--json", "-o", "o.html"], "must end in .json."),
        (["label", "stats", "p", "-o", "o.csv"], "must end in .txt, .json or .html."),
        (["export", "m.json", "--to", "onnx", "-o", "o.json"], "o.json: the model is a .onnx file here"),
    ],
)  # fmt: skip
def test_what_is_written_says_how_its_file_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run, args: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    fp.write(MADE, "d.txt")
    fp.write_scores(range(MADE.n_docs), "s")
    fp.write_run(to_run(MADE, range(MADE.n_docs)), "a.run")
    fp.RankNet().fit(MADE).save("m.json")
    before = sorted(Path().iterdir())
    done = run(*args)
    assert done.returncode != 0
    assert said in done.stderr
    assert done.stdout == ""
    assert sorted(Path().iterdir()) == before


def test_a_suffix_that_says_no_format_is_taken(tmp_path: Path, run) -> None:
    fp.write(MADE, tmp_path / "d.txt")
    target = tmp_path / "model.v2"
    assert run("train", "RankNet", tmp_path / "d.txt", "-o", target).returncode == 0
    assert fp.load(target).n_features_in_ == 2
    done = run("rank", target, tmp_path / "d.txt", "-o", tmp_path / "fold1.listnet")
    assert done.returncode == 0
    target = tmp_path / "part.train"
    assert run("convert", tmp_path / "d.txt", target, "--to", "letor").returncode == 0
    assert fp.read_letor(target).n_docs == MADE.n_docs
