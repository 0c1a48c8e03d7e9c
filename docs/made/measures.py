"""docs/measures.md."""

from __future__ import annotations

import inspect

from firstpage.measures.learned import LEARNED
from firstpage.measures.registry import ALIASES, MEASURES, measure_signatures


def measures_page() -> str:
    lines = [
        "# Measures",
        "",
        "Made by `make docs` from `firstpage.measures`; `firstpage measures` prints the short form.",
        "",
        "A measure is written `Name(parameter=value)@cut-off`. Case, hyphens and underscores do not",
        "matter, and the names of `trec_eval` (`ndcg_cut_10`, `P_5`, `map`, `recip_rank`) work too.",
        "Higher is better unless said. `rel` is the label from which on a document is relevant.",
        "",
    ]
    other: dict[str, list[str]] = {}
    for alias, name in ALIASES.items():
        other.setdefault(name, []).append(alias)
    written = {form.split("(")[0].split("@")[0]: form for form, _ in reversed(measure_signatures())}
    for cls in MEASURES:
        lines += [f"## {cls.__name__}", "", f"`{written[cls.__name__]}`: {cls.about}."]
        if cls.lower_is_better:
            lines += ["**Lower is better.**"]
        lines += ["", inspect.cleandoc(cls.__doc__ or "")]
        if cls.__name__ in other:
            lines += ["", "Also called: " + ", ".join(f"`{a}`" for a in other[cls.__name__]) + "."]
        lines.append("")
    return "\n".join([*lines, *learned_part()])


def learned_part() -> list[str]:
    lines = ["## Measure files", ""]
    lines += [f"- `{form}`: {about}." for form, about in measure_signatures() if "(file" in form]
    for name, cls in LEARNED.items():
        lines += ["", f"`{name}`: {inspect.cleandoc(cls.__doc__ or '')}"]
    return [
        *lines,
        "",
        "A measure file holds gains of grades and discounts of places, and weights of grades at",
        "places: learned ones, or numbers of your own (`Utility.from_gains(gains, discounts).save(path)`).",
        "It is written in the place of the parameters: `NDCG(measure.json)@10`,",
        "`DCG(my files/news.json, form=weights, segment=news)@5`. A name without a point or a slash",
        "needs `file=`; one with odd characters goes into quotes. On the command line, quote the",
        "whole: brackets mean something to shells.",
        "",
        "- `form=gains` multiplies discounts and gains, `form=weights` takes the table of weights;",
        "  where neither is said, the file's own `form` counts. `segment` is a kind of queries that",
        "  the file has weights for.",
        "- Without a cut-off all places of the file count; there is none beyond them.",
        "- Worth is counted from the worst grade on: that one, unjudged documents, labels below it",
        "  and places that a list does not have are worth 0. Any other label that is not a grade of",
        "  the file is an error.",
        "- A convention's gain and discount do not apply; its other settings do.",
        "- The file is read whenever the text is, so a changed file counts at once.",
        "- Where discounts rise, an unjudged document can lift a judged one to a better place, and",
        "  NDCG go beyond 1: the best order is that of the judged documents.",
        "",
        'In Python `measure(utility)` is the DCG of a `Utility`, and `measure("NDCG@10", of=utility)`',
        "its NDCG; `of` may also be a path.",
        "",
    ]
