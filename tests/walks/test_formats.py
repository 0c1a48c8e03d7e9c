"""docs/formats.md lists every file that a command writes; the commands that it names read them."""

from __future__ import annotations

import contextlib
import io
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import click
import pytest

import firstpage as fp
from firstpage.cli import app, main
from firstpage.cli.outputs import OutputFile
from tests.walks.shop import write_search_log, write_texts

pytest.importorskip("tantivy")
pytest.importorskip("starlette")

PAGE = Path(__file__).parents[2] / "docs" / "formats.md"
PEOPLE = {
    "values per query", "trials of a search for parameters", "exported model",
    "plan of assignments", "documents of a pool with their runs", "tables and reports",
    "summary of a gate", "results of a gate",
}  # fmt: skip
ELSEWHERE = {"demo", "queries to judge"}  # tests/demo, tests/serving/test_feedback.py
SERVERS = {"serve", "serve --index", "label serve"}  # tests/serving, tests/labeling/app
WRITE = """
index products.jsonl -o shop.index
candidates shop.index queries.jsonl --depth 15 -o bm25.run
candidates shop.index queries.jsonl --depth 15 --k1 0.2 -o other.run
features shop.index queries.jsonl bm25.run --qrels graded.qrels --set letor -o data.parquet
convert data.parquet data.txt
convert data.parquet folds --folds 3
shard data.txt shards
train ListNet data.parquet --checkpoint checkpoint.json -o model.json
rank model.json data.parquet -o scores.txt
rank model.json data.parquet -o learned.run
import feature-log log.jsonl -o logged.parquet --run before.run
import clicks clicks.csv -o votes.csv
label setup labels --index shop.index --queries queries.jsonl --first 6 --depth 6 --k 3 --assessor ada
label judge labels --assessor ada --function taste:assess
label export labels -o truth.qrels
label export labels -o truth.jsonl
label export labels --content log -o log.csv
label export labels --content pairs -o pairs.csv
label backup labels -o labels.db
rerank bm25.run shop.index queries.jsonl --assessor taste:longest --calls 2 --cache replies.jsonl --labels asked.csv -o asked.run
label setup pages --tool lists --index shop.index --queries queries.jsonl --run bm25.run --run other.run --k 5 --qrels graded.qrels --assessor ada
label judge pages --assessor ada --function taste:page
label export pages --content preferences -o preferences.jsonl
evaluate graded.qrels bm25.run --save-baseline base.json
hybrid bm25.run other.run --qrels graded.qrels --folds 2 --save stages.json -o staged.run
sample graded.qrels --size 3 --seed 1 -o sample.csv
sample bm25.run learned.run --documents 3 --depth 5 --drawn drawn.run -o documents.csv
aggregate bm25.run learned.run --method learned --qrels graded.qrels --save-model fusion.json -o fused0.run
dcglearn learn preferences.jsonl --K 5 --rounds 0 -o measure.json
dcglearn choose preferences.jsonl --measure measure.json --count 5 -o pool.jsonl
"""
CLICKS = """
clicks describe pages.log --save sessions.parquet
clicks fit sessions.parquet -m PBM -o pbm.json
clicks propensities sessions.parquet -o propensities.json --trust --qrels graded.qrels --trust-to trust.json
"""
READ = {
    "index of texts": """
        index --add more.jsonl -o shop.index
        candidates shop.index queries.jsonl -o again.run
        features shop.index queries.jsonl bm25.run -o again.parquet
        search shop.index shoe
        rerank bm25.run shop.index queries.jsonl --assessor taste:longest --calls 2 -o asked2.run
        label setup again --index shop.index --queries queries.jsonl
        label export labels --content data --index shop.index -o labeled.parquet""",
    "run": """
        features shop.index queries.jsonl learned.run -o again2.parquet
        evaluate --qrels graded.qrels --run learned.run
        compare --qrels graded.qrels --run bm25.run --run learned.run
        crossval data.parquet ListNet --folds 3 --run bm25.run
        aggregate bm25.run learned.run -o both.run
        hybrid bm25.run learned.run --qrels graded.qrels --folds 2
        label setup pooled --index shop.index --queries queries.jsonl --run bm25.run --run learned.run
        dcglearn compare NDCG@5 NDCG@10 --qrels graded.qrels --run bm25.run --run learned.run
        rerank asked.run shop.index queries.jsonl --assessor taste:longest --calls 1 -o asked3.run
        clicks safe sessions.parquet --old bm25.run --new learned.run --propensities propensities.json
        describe learned.run
        convert learned.run learned.txt --to run""",
    "features and labels": """
        train ListNet data.txt -o model2.json
        crossval data.parquet ListNet --folds 3
        rank model.json data.parquet -o scores2.txt
        evaluate data.parquet --model model.json
        compare data.txt --scores scores.txt --scores scores.txt
        describe data.parquet
        shard data.txt shards2
        convert data.parquet data.csv
        label setup letor --letor data.txt --queries queries.jsonl --collection products.jsonl""",
    "folds": "crossval folds ListNet",
    "shards": """
        train ListNet shards -o model3.json
        rank model3.json shards -o scores3.txt
        evaluate shards --scores scores3.txt""",
    "judgments": """
        clicks judge sessions.parquet --against graded.qrels -o clicked5.qrels
        clicks preferences sessions.parquet --qrels graded.qrels -o clicked6.jsonl
        train ListNet data.parquet --qrels truth.qrels -o model4.json
        crossval data.parquet ListNet --qrels graded.qrels --folds 3
        convert data.parquet judged.parquet --qrels truth.qrels
        describe data.parquet --qrels truth.qrels
        features shop.index queries.jsonl bm25.run --qrels truth.qrels -o again3.parquet
        candidates shop.index queries.jsonl --tune --qrels graded.qrels -o tuned.run
        evaluate --qrels truth.qrels --run bm25.run
        compare --qrels truth.qrels --run bm25.run --run other.run
        aggregate bm25.run other.run --qrels truth.qrels -o both2.run
        dcglearn compare NDCG@5 NDCG@10 --qrels truth.qrels --run bm25.run --run other.run
        label setup pages2 --tool lists --index shop.index --queries queries.jsonl --run bm25.run --run other.run --qrels truth.qrels""",
    "truth with ties and confidences": """
        train ListNet data.parquet --qrels truth.jsonl -o model5.json
        crossval data.parquet ListNet --qrels truth.jsonl --unjudged drop --folds 3
        convert data.parquet judged2.parquet --qrels truth.jsonl
        evaluate --qrels truth.jsonl --run bm25.run""",
    "scores": """
        evaluate data.parquet --scores scores.txt
        compare data.parquet --scores scores.txt --scores scores.txt
        convert data.parquet scored.run --scores scores.txt""",
    "model": """
        rank model.json data.parquet -o scores4.txt
        describe model.json
        explain model.json
        evaluate data.parquet --model model.json
        search shop.index shoe --model model.json
        export model.json --to numpy -o scorer.py""",
    "log of clicks": """
        clicks describe pages.log
        clicks fit pages.log -m RankCTR
        clicks propensities pages.log
        clicks judge pages.log -o clicked.qrels
        clicks preferences pages.log --qrels graded.qrels -o clicked1.jsonl
        clicks safe pages.log --old bm25.run --new other.run --propensities propensities.json -o safe1.run
        train ListNet data.parquet --clicks pages.log -o model9.json""",
    "sessions": """
        clicks describe sessions.parquet
        clicks fit sessions.parquet -m RankCTR
        clicks propensities sessions.parquet
        clicks judge sessions.parquet -o clicked2.qrels
        clicks preferences sessions.parquet --qrels graded.qrels -o clicked2.jsonl
        clicks safe sessions.parquet --old bm25.run --new other.run --propensities propensities.json -o safe2.run
        train RankNet data.parquet --clicks sessions.parquet -o model10.json
        evaluate --clicks sessions.parquet --propensities propensities.json bm25.run
        compare --clicks sessions.parquet --propensities propensities.json bm25.run other.run""",
    "click model": """
        clicks judge sessions.parquet --model pbm.json -o clicked3.qrels
        train RankNet data.parquet --clicks sessions.parquet --propensities pbm.json -o model31.json""",
    "propensities": """
        clicks judge sessions.parquet --propensities propensities.json -o clicked4.qrels
        clicks safe sessions.parquet --old bm25.run --new other.run --propensities propensities.json -o safe.run
        train RankNet data.parquet --clicks sessions.parquet --propensities propensities.json -o model11.json
        evaluate --clicks sessions.parquet --propensities propensities.json bm25.run
        compare --clicks sessions.parquet --propensities propensities.json bm25.run other.run""",
    "trust bias": """
        train ListNet data.parquet --clicks sessions.parquet --propensities trust.json -o model12.json""",
    "sample of queries or documents for people": """
        estimate bm25.run learned.run --human graded.qrels --machine graded.qrels --sample sample.csv
        estimate bm25.run learned.run --human graded.qrels --machine graded.qrels --sample documents.csv -m P@5""",
    "baseline of a gate": """
        evaluate graded.qrels bm25.run --baseline base.json --fail-if-worse 0.1""",
    "fusion": """
        aggregate bm25.run learned.run --model fusion.json -o fused.run
        describe fusion.json""",
    "fusion of first stages": "hybrid bm25.run other.run --fusion stages.json -o staged2.run",
    "replies of an assessor": """
        rerank bm25.run shop.index queries.jsonl --assessor taste:longest --calls 2 --cache replies.jsonl -o asked4.run""",
    "responses of an engine": "import feature-log log.jsonl -o logged2.parquet",
    "checkpoint": "train ListNet data.parquet --checkpoint checkpoint.json -o model6.json",
    "labeling project": """
        label judge labels --assessor ada --function taste:assess
        label settings labels
        label queries labels
        label stats labels
        label export labels -o truth2.qrels
        label backup labels -o labels2.jsonl""",
    "backup of a project": "label restore labels.db restored",
    "log of judgments": "label simulate --votes log.csv --k 2 --runs 2",
    "votes on pairs": """
        train RankNet data.parquet --pairs pairs.csv -o model8.json
        train RankNet data.parquet --pairs asked.csv -o model13.json
        crossval data.parquet RankNet --pairs pairs.csv --folds 3
        evaluate data.parquet --model model.json --pairs pairs.csv
        label simulate --votes votes.csv --k 2 --runs 2
        label simulate --votes pairs.csv --k 2 --runs 2""",
    "preferences between lists": """
        dcglearn learn preferences.jsonl --K 5 --rounds 0 -o measure2.json
        dcglearn choose pool.jsonl --prefs preferences.jsonl""",
    "pairs of lists to judge": "dcglearn choose pool.jsonl --measure measure.json",
    "learned measure": """
        dcglearn show measure.json
        dcglearn choose pool.jsonl --measure measure.json
        evaluate --qrels graded.qrels --run bm25.run --measure NDCG(measure.json)@5
        compare --qrels graded.qrels --run bm25.run --run other.run --measure NDCG(measure.json)@5
        train AdaRank(measure='NDCG(measure.json)@5') data.parquet -o model7.json""",
}  # fmt: skip


class Row(NamedTuple):
    name: str
    written_by: list[str]
    read_by: list[str]


def rows() -> dict[str, Row]:
    """Return the rows of the table by the name of the file."""
    table = {}
    for line in PAGE.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 3 and not cells[0].startswith(("file", "---")):
            name = cells[0].split(" (")[0]
            named = [re.findall(r"`([a-z][^`]*)`", cell) for cell in cells[1:]]
            table[name] = Row(name, *named)
    return table


def commands() -> Iterator[tuple[str, click.Command]]:
    """Yield the words and the object of every command."""

    def walk(command: click.Command, words: tuple[str, ...]) -> Iterator[tuple[str, click.Command]]:
        if isinstance(command, click.Group):
            context = click.Context(command)
            for name in command.list_commands(context):
                child = command.get_command(context, name)
                assert child is not None
                yield from walk(child, (*words, name))
        else:
            yield " ".join(words), command

    return walk(app, ())


def call(line: str) -> tuple[int, str]:
    """Run a command line in this process; return its exit code, and what it prints."""
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(io.StringIO()) as out:
        patch.setattr(sys, "argv", ["firstpage", *line.split()])
        with contextlib.redirect_stderr(out):
            try:
                main()
            except SystemExit as stop:
                return int(stop.code or 0), out.getvalue()
    raise AssertionError(f"firstpage {line} has no exit code")


def run(line: str) -> None:
    """Run a command line in this process, which must succeed."""
    code, printed = call(line)
    assert not code, f"firstpage {line}\n{printed}"


def write_all(folder: Path) -> None:
    """Write a file of each kind into a folder, which is the present one."""
    write_texts(folder)
    write_search_log(folder)
    Path("more.jsonl").write_text('{"id": "sku-900", "title": "red shoe", "text": "A shoe."}\n')
    Path("clicks.csv").write_text(
        "query,docid,position,clicked\na,x,1,0\na,y,2,1\na,z,3,1\nb,x,1,0\nb,y,2,0\nb,z,3,1\n"
    )
    for line in WRITE.strip().splitlines():
        run(line)
    write_clicks()
    for line in CLICKS.strip().splitlines():
        run(line)


def write_clicks() -> None:
    """Write a log of clicks of simulated users on the results of BM25."""
    sessions = fp.clicks.simulate(
        fp.read_run("bm25.run"), fp.read_qrels("graded.qrels"), "pbm", n_sessions=2000, noise=3.0
    )
    lines = []
    for page, query in enumerate(sessions.page_query.tolist()):
        rows = slice(*sessions.offsets[page : page + 2])
        names = [sessions.documents[d] for d in sessions.document[rows]]
        clicked = [n for n, c in zip(names, sessions.clicks[rows], strict=True) if c]
        lines.append(f"{sessions.queries[query]}\t{','.join(names)}:{','.join(clicked)};\n")
    Path("pages.log").write_text("".join(lines))


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with a file of each kind."""
    folder = tmp_path_factory.mktemp("formats")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.syspath_prepend(str(folder))
        patch.delitem(sys.modules, "taste", raising=False)
        write_all(folder)
        yield folder
        sys.modules.pop("taste", None)


def test_every_output_is_in_the_table() -> None:
    listed = {command for row in rows().values() for command in row.written_by}
    for name, command in commands():
        for option in command.params:
            if isinstance(option.type, OutputFile):
                plain = option.opts[0] == "-o" or isinstance(option, click.Argument)
                expected = name if plain or "--html" in option.opts else f"{name} {option.opts[0]}"
                assert expected in listed, f"docs/formats.md does not say who reads `{expected}`"


def test_commands_and_options_of_the_table_exist() -> None:
    known = dict(commands())
    for row in rows().values():
        for text in (*row.written_by, *row.read_by):
            name, _, option = text.partition(" --")
            assert name in known, text
            options = {spelled for each in known[name].params for spelled in each.opts}
            assert not option or f"--{option}" in options, text


def test_every_file_has_a_reader() -> None:
    for name, row in rows().items():
        if name not in PEOPLE | ELSEWHERE:
            tested = {line.strip() for line in READ[name].strip().splitlines()}
            for text in set(row.read_by) - SERVERS:
                command, _, option = text.partition(" --")
                assert any(
                    line.startswith(f"{command} ") and (not option or f"--{option} " in line)
                    for line in tested
                ), f"{name}: nothing tests `{text}`"


@pytest.mark.parametrize("name", READ)
def test_commands_of_the_table_read_it(name: str, written: Path) -> None:
    assert name in rows()
    for line in READ[name].strip().splitlines():
        run(line.strip())
