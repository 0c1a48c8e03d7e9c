"""docs/measures.md."""

from __future__ import annotations

from dataclasses import replace

from firstpage.core import Table
from firstpage.evaluation.measures import (
    ALIASES,
    LEARNED,
    TOOLS,
    Listing,
    Measure,
    list_measures,
    measure_classes,
)
from made.markdown import Docstring, Entry, item, listed

HEAD = """\
# Measures

A measure is written `Name(parameter=value)@cutoff`, as in `NDCG(gain=linear)@10`. Case, hyphens and
underscores do not matter. One text may name several measures: `"NDCG@10,AP"`, `"NDCG@10 AP"`,
`NDCG@{5,10}`. `firstpage measures` lists all measures in the shell. `module:Name` is
[a measure of your own](custom.md#a-measure-of-your-own).

Higher is better unless noted otherwise. `rel` is the smallest label that counts as relevant. Every
measure takes `condensed=true`, as in `AP(condensed=true)`: unjudged documents are then removed from
the rankings before this measure reads them, as `--condensed` does for all measures. Both remove them
from the first `--depth` documents, as `trec_eval -M -J`. A cut-off is at most 100,000,000.
"""
TOOL_NAMES = """\
## Names in other tools

The names of these tools can be used as they are, with their parameters: `ndcg_cut_10`,
`ndcg_cut.5,10`, `P_5,10`, `iprec_at_recall_0.10`, `set_F.0.5`, `ndcg.1=3.5,2=9` and
`utility.1,-1,0,0` (trec_eval), `nDCG(dcg='exp-log2')@10`, `nDCG(gains={1:3, 2:9})`,
`AP(judged_only=True)` and `IPrec@0.1` (ir_measures), `precision@5`, `map-l2` and `rbp.95` (ranx),
`alpha-nDCG@20` and `strec@10` (ndeval). `official`, `all_trec` and `set` are trec_eval's groups of
measures, and `P` and `success` without a cut-off are trec_eval's nine and three measures. A name is
not a [convention](conventions.md): `ndcg_cut_10` has linear gains, as in trec_eval, only with
`--convention trec`. In Python, measures of ir_measures and PyTerrier can be passed as objects
(`measures=[nDCG @ 10]`); NDCG then has linear gains, as there.

- `recall` without a cut-off is that of the entire list, as in ranx; trec_eval computes it at nine
  cut-offs. So are `precision` (SetP) and `hit_rate` (SetSuccess).
- A label without a gain in `gains={...}` is its own gain, as in ir_measures and trec_eval; a label
  above the largest one is an error here. Gains need not rise with the label: the ideal order is that
  of the gains.
- Interpolated precision (`iprec_at_recall`, `11pt_avg`) rounds the number of relevant documents as
  trec_eval 9 and pytrec_eval do. trec_eval 10 rounds to the nearest number, so that a few values
  differ: in its own tests 11pt_avg is .1962, and .1958 here.
- `ERR` divides by 2 to the greatest label of the data; that of ir_measures (gdeval) has a scale up to
  4: `ERR(max=4)`. `RBO` is compatibility as its authors define it, with `p=0.9`; `compatibility` has
  their `p=0.95`. `Compat`, as a text or an object of ir_measures, has its value,
  `RBO(p=0.95, truncated=true)`: its sums end with the lists, so that the value grows with the length
  of a ranking.
- `rbp` has `p=0.8` here, 0.9 in trec_eval: write `rbp_p=0.9`. It is binary here; trec_eval 10 and
  ranx weight documents by their grades. With `RBP(p=0.9, gain=linear, max=query)` these are divided
  by the greatest one of the query, as in trec_eval; ranx does not divide them. `rbp@95` has a cut-off
  here, not `p=0.95`. trec_eval reports a residual of 0
  where no document is unjudged; `RBPResidual` adds the weight of the ranks below the list.
- `max_rel` and `min_rel` of ir_measures are `max` and `min`. Labels above `max` are an error here,
  and are clipped there. As in cwl_eval, `INST`, `INSQ`, `BPM` and `NERR8` to `NERR11` read 1,000
  ranks.
"""
MEASURE_FILES = """\
## Measure files

A measure file contains gains of grades and discounts of positions, and a table of weights of grades
at positions. [`firstpage dcglearn learn`](dcglearn.md) writes one from preferences. To use numbers
of your own, save a utility: `fp.dcglearn.Utility.from_gains(gains, discounts).save(path)`.

Write the file where the parameters go: `NDCG(measure.json)@10`, or
`DCG(my files/news.json, form=weights, segment=news)@5`. A file name without a period or a slash
needs `file=`, and one with special characters needs quotes. On the command line, quote the entire
measure, because parentheses have a meaning in shells.

- `form=gains` multiplies discounts and gains; `form=weights` reads the table of weights. The
  default is the `form` of the file.
- `segment` selects a kind of queries for which the file has its own weights.
- Without a cut-off, all positions of the file count. A larger cut-off is an error.
- Values are relative to the lowest grade. The lowest grade, labels below it, unjudged documents and
  positions beyond the end of a list have the value 0. Any other label that is not a grade of the
  file is an error.
- The gain and discount of a convention do not apply; its other settings do.
- The file is read each time the text is parsed, so changes of the file take effect at once.
- Where discounts increase with the position, an unjudged document can move a judged one to a
  position of larger discount. NDCG can then exceed 1, because the ideal order contains only judged
  documents.

In Python, `fp.measure(utility)` is the DCG of a `Utility`, and `fp.measure("NDCG@10", of=utility)`
is its NDCG; `of` may also be a path.
"""


def measures_page() -> str:
    """Return docs/measures.md: the list of the measures, then a section per measure."""
    sections = [line for cls in measure_classes() for line in measure_section(cls)]
    return "\n".join([*overview(), *sections, *measure_files()])


def overview() -> list[str]:
    """Return what stands above the sections: all measures, and their names in other tools."""
    listings = list_measures()
    lines = [HEAD]
    for group in dict.fromkeys(each.group for each in listings):
        rows = [[_link(each), each.about] for each in listings if each.group == group]
        lines += [Table([group, "description"], rows, left_aligned=2).markdown(), ""]
    lines += ["`make docs` generates this page from the docstrings of the measures.", ""]
    rows = [
        [each.measure, *(_code(each.tool_names.get(tool, "")) for tool in TOOLS)]
        for each in listings
        if each.tool_names
    ]
    lines += [TOOL_NAMES, Table(["measure", *TOOLS], rows, left_aligned=5).markdown(), ""]
    return lines


def _link(listing: Listing) -> str:
    target = "measure-files" if listing.group == "measure files" else listing.measure.lower()
    return f"[`{listing.signature}`](#{target})"


def _code(names: str) -> str:
    return ", ".join(f"`{name}`" for name in names.split(", ") if name)


def measure_section(cls: type[Measure]) -> list[str]:
    """Return the section of a measure, from its docstring."""
    signature = next(each.signature for each in list_measures() if each.measure == cls.__name__)
    docstring = Docstring.of(cls)
    lines = [f"## {cls.__name__}", "", f"`{signature}`", "", *docstring.paragraphs()]
    if cls.lower_is_better and "ower is better" not in docstring.text:
        lines += ["Lower is better.", ""]
    entries = [entry for entry in docstring.entries("Parameters") if entry.name != "condensed"]
    lines += listed("Parameters", map(_with_cutoff, entries))
    if references := docstring.references():
        lines += ["**References**", "", *(line for each in references for line in item(each)), ""]
    if aliases := [f"`{alias}`" for alias, name in ALIASES.items() if name == cls.__name__]:
        lines += [f"Also called {', '.join(aliases)}.", ""]
    return lines


def _with_cutoff(entry: Entry) -> Entry:
    return replace(entry, name="@n") if entry.name == "cutoff" else entry


def measure_files() -> list[str]:
    """Return the section on measures that are read from a file."""
    lines = [MEASURE_FILES]
    for name, cls in LEARNED.items():
        lines += [f"### {name} of a measure file", "", *Docstring.of(cls).paragraphs()]
    return lines
