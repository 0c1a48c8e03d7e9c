"""Advice names a parameter in Python, and its option in commands that have one."""

from __future__ import annotations

import json
import pickle
import sys
from pathlib import Path

import click
import pytest

import firstpage as fp
from firstpage.cli.help import documented_command
from firstpage.cli.shared import load_function
from firstpage.core.engine.dask_worker import named_errors
from firstpage.core.errors import Advice, DataError, plain_text
from firstpage.data.formats.trec import to_run
from tests.narrow import dense


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    data = fp.Synthetic(queries=6, docs=6, features=3, grades=3).dataset()
    fp.write(data, "d.txt")
    fp.write(data.with_features(data.X[:, :2]), "narrow.txt")
    fp.write_qrels(data, "d.qrels")
    fp.write_run(to_run(data, dense(data.X[:, 0])), "d.run")
    fp.ListNet().fit(data).save("model.json")
    Path("unknown").write_bytes(b"\0\1\2" * 50)
    Path("sku.jsonl").write_text('{"sku": "1", "text": "red"}\n')
    Path("nested.jsonl").write_text('{"id": "1", "text": "red", "meta": {"a": 1}}\n')
    Path("queries.jsonl").write_text('{"text": "red"}\n')
    Path("dates.csv").write_text("qid,label,x,day\n1,1,2,mon\n1,0,3,tue\n")
    Path("shop.jsonl").write_text('{"id": "1", "text": "red shoe"}\n')
    Path("large.txt").write_text("1 qid:1 1:1e39\n0 qid:1 1:1\n")
    Path("large.csv").write_text("qid,label,x\n1,1,1e39\n1,0,1\n")
    Path("mixed.jsonl").write_text('{"id": "1", "text": "red", "n": "two"}\n')
    Path("brands.csv").write_text("qid,label,x,brand_id\n1,1,2,3\n1,0,3,4\n")
    Path("folder").mkdir()
    logged = [{"name": "bm25", "value": 1.0}]
    hit = {"_id": "a", "_score": 1.0, "fields": {"_ltrlog": [{"log": logged}]}}
    Path("log.json").write_text(json.dumps({"hits": {"hits": [hit]}}))


CASES = [  # command, a part of its message, the message ends with it
    ("index unknown -o x.index", "folder (a folder", "Name it with --format."),
    ("index sku.jsonl -o x.index", "has no id", "with --id-field."),
    ("index nested.jsonl -o x.index", "a nested object", "skip the field with --ignore-field meta."),
    ("candidates shop.index unknown -o c.run", "a query per line", "Name it with --query-format."),
    ("candidates shop.index queries.jsonl -o c.run", "has no id", "number the queries with --ordinal."),
    ("convert unknown out.csv", "of a known format", "Name it with --from."),
    ("describe unknown", "of a known format", "Name it with --from."),
    ("train ListNet unknown -o m.json", "of a known format", "npz, truth."),
    ("evaluate unknown --model model.json", "of a known format", "npz, truth."),
    ("convert d.txt out.xyz", "not that of a known format", "Or name the format with --to."),
    ("features shop.index shop.jsonl d.run -o out.xyz", "not that of a known format", ".arrow or .npz."),
    ("rank model.json brands.csv -o s.txt", "left out 'brand_id'", "that holds quantities."),
    ("train ListNet brands.csv -o m.json --categorical no", "left out 'brand_id'", "that holds categories with --categorical."),
    ("train ListNet dates.csv -o m.json", "is text", "Name it with --categorical day, or drop it."),
    ("rank model.json dates.csv -o s.txt", "is text", "of 2 categories."),
    ("rank model.json narrow.txt -o s.txt", "was trained on 3", "read it with --pad."),
    ("convert large.txt out.csv", "does not fit into float32", "Read it with --dtype float64."),
    ("train ListNet large.txt -o m.json", "does not fit into float32", "a file that can be read."),
    ("train ListNet large.csv -o m.json", "does not fit into float32", "a file that can be read."),
    ("index shop.jsonl -o folder", "exists; add to it", "Or replace it with --overwrite."),
    ("index mixed.jsonl -o x.index --field n=number", "not a number", "Its kind is set by --field n=text."),
    ("evaluate d.qrels d.run --bounds --condensed", "beside complete ones", "Leave out --condensed."),
    ("train ListNet d.run -o m.json", "contains run lines", "not features and labels."),
    ("rank model.json d.qrels -o s.txt", "contains qrels lines", "not features and labels."),
    ("crossval d.run ListNet", "contains run lines", "pass it as --run."),
    ("evaluate --qrels d.qrels --run folder", "is a folder", "name a file in it."),
    ("convert d.txt out.csv --folds 3", "out.csv: names a folder", "the suffix of a file."),
    ("import feature-log log.json -o x.csv", "there are no judgments", "Give them with --qrels."),
    ("label simulate --n 5 --k 10", "--k 10 is more than", "(--n)."),
    ("label setup p --k 0", "Invalid value for '--k'", "x>=1."),
]  # fmt: skip


@pytest.mark.parametrize(("line", "part", "end"), CASES, ids=[case[0] for case in CASES])
def test_advice_names_the_option_of_the_command(files, run, line: str, part: str, end: str) -> None:
    if "shop.index" in line:
        pytest.importorskip("tantivy")
        assert run("index", "shop.jsonl", "-o", "shop.index", "--latent", 0).returncode == 0
    done = run(*line.split())
    assert (done.returncode == 0) == line.startswith("import")  # a note, not an error
    (message,) = (row for row in done.stderr.splitlines() if part in row)
    assert message.endswith(end)


def test_in_python_advice_names_the_parameter() -> None:
    error = DataError("f: has no id.", Advice("Name it with {}.", "id_field", "sku"))
    assert str(error) == "f: has no id. Name it with id_field='sku'."
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    assert str(DataError("f: is empty.")) == "f: is empty."


class Located(DataError):
    """An error that is not created from a message only."""

    def __init__(self, message: str, line: int, advice: Advice) -> None:
        super().__init__(f"{message} in line {line}.", advice)
        self.line = line


def test_errors_that_take_other_arguments_keep_their_type() -> None:
    @documented_command("read")
    @click.option("--id-field")
    def read(id_field: str | None) -> None:
        raise Located("no id", 3, Advice("Name it with {}.", "id_field"))

    with pytest.raises(Located) as raised:
        read.main([], standalone_mode=False)
    assert str(raised.value) == "no id in line 3. Name it with --id-field."
    assert raised.value.line == 3


def test_errors_of_workers_keep_their_advice() -> None:
    advice = Advice("Name it with {}.", "id_field")
    with pytest.raises(DataError) as raised, named_errors():
        raise DataError("f: has no id.", advice)
    error = pickle.loads(pickle.dumps(raised.value))
    assert (error.message, error.advice) == ("on the worker ?: f: has no id.", advice)


def test_errors_of_named_functions_keep_their_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    advice = Advice("Name it with {}.", "id_field")

    def imported(*_: str) -> None:
        raise DataError("there is none.", advice)

    monkeypatch.setattr("sys.path", sys.path.copy())
    monkeypatch.setattr("firstpage.cli.shared.imported", imported)
    with pytest.raises(DataError) as raised:
        load_function("module:name", "--call")
    assert (raised.value.message, raised.value.advice) == ("--call: there is none.", advice)


def test_pages_and_apis_omit_advice() -> None:
    error = DataError("f: has\nno id.", Advice("Name it with {}.", "id_field", "sku"))
    assert plain_text(error) == "f: has no id."
    assert plain_text(DataError("f: is empty.")) == plain_text("f: is empty.") == "f: is empty."
