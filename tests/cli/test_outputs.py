"""Output files with the suffix of another format are refused before any work."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import firstpage as fp
from firstpage.cli import app
from firstpage.cli.outputs import DATA, FOREIGN_SUFFIXES, SUFFIXES, OutputFile, suffixes
from firstpage.data.formats.trec import to_run

ALL_SUFFIXES = sorted(
    {*FOREIGN_SUFFIXES, *(s for name in (*DATA, *SUFFIXES) for s in suffixes(name))}
)
OUTPUT_PARAMETERS = ("output", "html", "target", "folder", "per_query", "trials_to", "checkpoint")
INPUT_FOLDERS = {
    "crossval": {"folder"},
    "experiment": {"folder"},
}  # folders that are read, not written


def commands(group: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    if isinstance(group, click.Group):
        for name, command in group.commands.items():
            yield from commands(command, (*path, name))
    else:
        yield path


def command_at(path: tuple[str, ...]) -> click.Command:
    command: click.Command = app
    for name in path:
        assert isinstance(command, click.Group)
        command = command.commands[name]
    return command


@pytest.mark.parametrize("path", list(commands(app)), ids=" ".join)
def test_suffix_of_another_format_is_refused(path: tuple[str, ...], run) -> None:
    command = command_at(path)
    for param in command.params:
        help_text = getattr(param, "help", None) or ""
        named = param.name in OUTPUT_PARAMETERS and param.name not in INPUT_FOLDERS.get(path[0], ())
        if not isinstance(param.type, click.Path) or not (named or "rite " in help_text):
            assert not isinstance(param.type, OutputFile)
            continue
        assert isinstance(param.type, OutputFile), param.name
        allowed = {s for name in param.type.formats for s in suffixes(name)}
        for suffix in ALL_SUFFIXES:
            for name in (f"o{suffix}", f"o{suffix}.gz"):
                if suffix in allowed:
                    assert param.type.convert(name, param, None) == Path(name)
                else:
                    with pytest.raises(click.UsageError, match="name must"):
                        param.type.convert(name, param, None)
        if isinstance(param, click.Option):
            result = run(*path, param.opts[0], "o.pdf")
        else:
            others = [p for p in command.params if isinstance(p, click.Argument)]
            result = run(*path, *("o.pdf" if p is param else "x" for p in others))
        assert result.returncode == 2
        assert "o.pdf: " in result.stderr


SYNTHETIC = fp.Synthetic(queries=4, docs=4, features=2, grades=3).dataset()


@pytest.mark.parametrize(
    ("args", "message"),
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
        (["export", "m.json", "--to", "onnx", "-o", "o.json"], "o.json: the model is a .onnx file"),
    ],
)  # fmt: skip
def test_error_names_the_suffixes_of_the_format(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run, args: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    fp.write(SYNTHETIC, "d.txt")
    fp.write_scores(range(SYNTHETIC.n_docs), "s")
    fp.write_run(to_run(SYNTHETIC, range(SYNTHETIC.n_docs)), "a.run")
    fp.RankNet().fit(SYNTHETIC).save("m.json")
    before = sorted(Path().iterdir())
    result = run(*args)
    assert result.returncode != 0
    assert message in result.stderr
    assert result.stdout == ""
    assert sorted(Path().iterdir()) == before


def test_suffix_of_no_format_is_accepted(tmp_path: Path, run) -> None:
    fp.write(SYNTHETIC, tmp_path / "d.txt")
    target = tmp_path / "model.v2"
    assert run("train", "RankNet", tmp_path / "d.txt", "-o", target).returncode == 0
    assert fp.load(target).n_features_in_ == 2
    result = run("rank", target, tmp_path / "d.txt", "-o", tmp_path / "fold1.listnet")
    assert result.returncode == 0
    target = tmp_path / "part.train"
    assert run("convert", tmp_path / "d.txt", target, "--to", "letor").returncode == 0
    assert fp.read_letor(target).n_docs == SYNTHETIC.n_docs
