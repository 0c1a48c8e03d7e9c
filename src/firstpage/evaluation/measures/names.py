"""The names by which trec_eval, ir_measures, ranx and ndeval call the measures.

`expand` splits a text into the texts of single measures, `translate` rewrites a name of another
tool as a text of ours.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from firstpage.core import MeasureError, split_arguments

TOOLS = ("trec_eval", "ir_measures", "ranx", "ndeval")
ALIASES = {  # names without case, hyphens, underscores and periods: ours
    "map": "AP", "mrr": "RR", "mr": "RR", "reciprank": "RR", "precision": "P", "prec": "P",
    "pre": "P", "r": "Recall", "hitrate": "Success", "hit": "Success", "rprecision": "Rprec",
    "setrecall": "SetR", "setprecision": "SetP", "kappandcg": "kNDCG", "kappaerr": "kERR",
    "kendall": "Tau", "kendalltau": "Tau", "compatibility": "RBO",
    "gmmap": "GMAP", "11ptavg": "AP11", "relativep": "RelP", "setrelativep": "SetRelP",
    "setmap": "SetAP", "utility": "SetUtility", "numnonreljudgedret": "NumNonrelRet",
    "rbpresid": "RBPResidual", "qmeasure": "Q", "f": "F1", "mapia": "APIA", "strec": "StRecall",
    "subtopicrecall": "StRecall", "alphandcg": "AlphaNDCG",
}  # fmt: skip
CUTOFFS = (5, 10, 15, 20, 30, 100, 200, 500, 1000)
RECALLS = tuple(f"{i / 10:.2f}" for i in range(11))
DEFAULTS: dict[str, tuple[object, ...]] = {  # parameters of trec_eval's measures without any
    "ndcg_cut": CUTOFFS, "map_cut": CUTOFFS, "relative_p": CUTOFFS, "iprec_at_recall": RECALLS,
    "rprec_mult": tuple(f"{i / 5:.2f}" for i in range(1, 11)), "unj": (5, 10, 20),
    "p": CUTOFFS, "success": (1, 5, 10),
}  # fmt: skip
SET = ("utility", "set_P", "set_relative_P", "set_recall", "set_map", "set_F")
COUNTS = ("num_q", "num_ret", "num_rel", "num_rel_ret")


def _each(name: str, parameters: Iterable[object]) -> list[str]:
    return [f"{name}_{parameter}" for parameter in parameters]


OFFICIAL = (
    *(*COUNTS, "map", "gm_map", "Rprec", "bpref", "recip_rank"),
    *_each("iprec_at_recall", RECALLS),
    *_each("P", CUTOFFS),
)
ALL_TREC = (
    *OFFICIAL,
    *_each("recall", CUTOFFS),
    *("infAP", "gm_bpref"),
    *_each("Rprec_mult", DEFAULTS["rprec_mult"]),
    *("utility", "11pt_avg", "binG", "G", "ndcg", "ndcg_rel", "Rndcg"),
    *_each("ndcg_cut", CUTOFFS),
    *_each("map_cut", CUTOFFS),
    *_each("relative_P", CUTOFFS),
    *_each("success", DEFAULTS["success"]),
    *("set_P", "set_relative_P", "set_recall", "set_map", "set_F", "num_nonrel_judged_ret"),
    *("rbp_p=0.9", "rbp_resid_p=0.9"),
    *_each("unj", DEFAULTS["unj"]),
)
GROUPS = {"official": OFFICIAL, "all_trec": ALL_TREC, "set": (*COUNTS, *SET)}

OTHER_NAMES = {
    "11pt_avg": "AP11",
    "11pt-avg": "AP11",
    "precision": "SetP",
    "hit_rate": "SetSuccess",
}

NUMBER = r"\d*\.?\d+"
SIGNED = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
BARE = re.compile(NUMBER)
BRACES = re.compile(r"(.*(?:\{|@\[))([^\[\]{}]*)[\]}]", re.DOTALL)  # ir_measures: nDCG@[5, 10]
PARAMETERS = re.compile(rf"(.*?[_.@](?:p=)?)({NUMBER})", re.DOTALL)
MAX_TEXT = 50_000  # characters; there are 131,072 private ones
FIRST_MASK = 0xF0000  # private characters stand for the contents of brackets
TREC = re.compile(
    rf"(ndcg_cut|map_cut|p|recall|success|relative_p|unj|iprec_at_recall|rprec_mult|set_f|"
    rf"rbp(?:_resid)?)[_.](p=)?({NUMBER})",
    re.IGNORECASE,
)
TREC_TEXTS = {  # names of trec_eval with a parameter: our texts
    "ndcg_cut": "NDCG@{}", "map_cut": "AP@{}", "p": "P@{}", "recall": "Recall@{}",
    "success": "Success@{}", "relative_p": "RelP@{}", "unj": "Unjudged@{}",
    "iprec_at_recall": "IPrec(recall={})", "rprec_mult": "Rprec(multiple={})",
    "set_f": "SetF(beta={})", "rbp": "RBP(p={})", "rbp_resid": "RBPResidual(p={})",
}  # fmt: skip
TREC_GAINS = re.compile(  # trec_eval: ndcg.1=3.5,2=9
    rf"(ndcg|ndcg_rel|Rndcg|G)\.((?:\d+={SIGNED},)*\d+={SIGNED})", re.IGNORECASE
)
UTILITY = re.compile(rf"utility[._]({SIGNED}),({SIGNED}),({SIGNED}),({SIGNED})", re.IGNORECASE)
WITH_COMMAS = re.compile(rf"\b(?:{TREC_GAINS.pattern}|{UTILITY.pattern})", re.IGNORECASE)
RANX_LEVEL = re.compile(r"([\w\-.]+?)(?:@(\d+))?-l(\d+)", re.IGNORECASE)
IPREC = re.compile(rf"IPrec\s*(?:\((.*)\))?\s*@\s*({NUMBER})", re.IGNORECASE | re.DOTALL)
SCALE = re.compile(r"\b(min|max)_rel=")  # ir_measures: the labels with gains 0 and 1
BURGES = re.compile(r"(n?dcg)_burges(@\d+)?", re.IGNORECASE)
CUTOFF = re.compile(r"([^(@]+)\(([^@]*)\)", re.DOTALL)
IR_MEASURES_DCG = {"exp-log2": "gain=exp", "log2": "gain=linear"}
GAINS = re.compile(r"\bgains=\{([^{}]*)\}")  # ir_measures: gains={1:3, 2:9}
DEFAULT_DCG = re.compile(r"\bdcg=['\"]?log2['\"]?(?:,\s*|(?=\)))|,\s*dcg=['\"]?log2['\"]?(?=\))")
GAIN = re.compile(rf"\s*(\d{{1,9}})\s*[:=]\s*({SIGNED})\s*")
MAX_GAINS = 10_000  # labels of a table of gains
RETRIEVED = re.compile(r"NumRet\s*(?=\(.*\brel\b)", re.IGNORECASE)  # ir_measures: of relevant ones
COMPAT = re.compile(r"(compat(?:ibility)?)\s*(?:\((.*)\))?\s*(@.*)?", re.IGNORECASE | re.DOTALL)
RELATIVE = re.compile(r"SetP\s*\((.*)\)", re.IGNORECASE | re.DOTALL)


def expand(text: str) -> list[str]:
    """Return the texts of the measures that a text names.

    Measures are separated by commas or blanks.  `NDCG@{5,10}` and `P_5,10` are two of them, and
    `official`, `all_trec` and `set` are groups of trec_eval.
    """
    return list(_expanded(text))


@lru_cache(1024)
def _expanded(text: str) -> Sequence[str]:
    texts: list[str] = []
    masked, groups = _mask_brackets(text)
    if groups is None:
        return [text]
    plain = WITH_COMMAS.sub(lambda match: match[0].replace(",", _mask(len(groups))), masked)
    for word in re.sub(r"\s*,\s*", ",", re.sub(r"\s*@\s*", "@", plain)).split():
        for number, item in enumerate(word.split(",")):
            previous = PARAMETERS.fullmatch(texts[-1]) if number and texts else None
            if BARE.fullmatch(item) and previous is not None:
                prefix = previous[1]
                texts.append((prefix[:-1] + "_" if prefix.endswith(".") else prefix) + item)
            else:
                texts.append(item)
    groups.append(",")
    complete = ["".join(_unmasked(letter, groups) for letter in each) for each in texts]
    return [each for one in complete for each in _of_braces(one)] or [text]


def _mask(number: int) -> str:
    return chr(FIRST_MASK + number)


def _unmasked(letter: str, groups: list[str]) -> str:
    return groups[ord(letter) - FIRST_MASK] if ord(letter) >= FIRST_MASK else letter


def _mask_brackets(text: str) -> tuple[str, list[str] | None]:
    """Return a text with one private character for each pair of brackets, and what these stand for.

    Blanks before a bracket are removed.  None: the text has such characters itself, or is too long.
    """
    if len(text) > MAX_TEXT or any(ord(letter) >= FIRST_MASK for letter in text):
        return text, None
    groups: list[str] = []
    plain, depth = "", 0
    for letter in text:
        opens, closes = letter in "([{", letter in ")]}"
        if depth == 0 and opens:
            plain = plain.rstrip() + _mask(len(groups))
            groups.append(letter)
        elif depth:
            groups[-1] += letter
        else:
            plain += letter
        depth = max(depth + opens - closes, 0)
    return plain, groups


def _of_braces(text: str) -> list[str]:
    """Return the texts of `NDCG@{5,10}`, of a group, or of a measure with default parameters."""
    if match := BRACES.fullmatch(text):
        name = match[1].removesuffix("{").removesuffix("[")
        return [name + value.strip() for value in match[2].split(",")]
    if text.casefold() in GROUPS:
        return list(GROUPS[text.casefold()])
    return [f"{text}_{value}" for value in DEFAULTS.get(text.casefold(), ())] or [text]


def translate(text: str) -> str:
    """Return a name of another tool as a text of ours; other texts as they are."""
    text = text.strip().replace("judged_only=", "condensed=")
    if match := TREC.fullmatch(text):
        name, named, value = match[1].lower(), match[2], match[3]
        if name == "rbp" and not named:  # ranx: rbp.95
            value = f"0.{value}" if "." not in value else value
        return TREC_TEXTS[name].format(value)
    if match := TREC_GAINS.fullmatch(text):
        return f"{match[1]}(gain={_table(match[2])})"
    if match := UTILITY.fullmatch(text):
        return _utility(match)
    if match := IPREC.fullmatch(text):
        return f"IPrec({', '.join(filter(None, [match[1], f'recall={match[2]}']))})"
    if match := RANX_LEVEL.fullmatch(text):
        return f"{match[1]}(rel={match[3]})" + (f"@{match[2]}" if match[2] else "")
    if match := BURGES.fullmatch(text):
        return f"{match[1]}(gain=exp){match[2] or ''}"
    if "cutoff=" in text and (match := CUTOFF.fullmatch(text)):  # ir_measures: nDCG(cutoff=10)
        text = _with_cutoff(match[1], split_arguments(match[2]))
    if "relative=" in text and (match := RELATIVE.fullmatch(text)):
        text = _with_relative(split_arguments(match[1]))
    text = RETRIEVED.sub("NumRelRet", SCALE.sub(r"\1=", text))
    if match := COMPAT.fullmatch(text):
        text = _compatibility(*match.groups(default=""))
    if text.startswith("SDCG"):
        text = DEFAULT_DCG.sub("", text).replace("()", "")
    return OTHER_NAMES.get(text.casefold(), _with_gains(text))


def _with_gains(text: str) -> str:
    """Return a text with the gains of ir_measures, `gains={2:5}` or `dcg='exp-log2'`, as ours."""
    if GAINS.search(text):
        text = DEFAULT_DCG.sub("", text)
        if "dcg=" in text:
            raise MeasureError(f"{text!r}: gains cannot be combined with dcg='exp-log2'.")
        return GAINS.sub(lambda match: f"gain={_table(match[1])}", text)
    for theirs, ours in IR_MEASURES_DCG.items() if "dcg=" in text else ():
        text = re.sub(rf"dcg=['\"]?{theirs}['\"]?(?=[,)])", ours, text)
    return text


def _with_cutoff(name: str, parameters: list[str]) -> str:
    """Return `name(parameters)`, in which a parameter `cutoff=10` is written as `@10`."""
    words = [parameter.strip() for parameter in parameters]
    others = ", ".join(word for word in words if not word.startswith("cutoff="))
    cutoffs = [f"@{word.removeprefix('cutoff=')}" for word in words if word.startswith("cutoff=")]
    return name + (f"({others})" if others else "") + "".join(cutoffs)


def _compatibility(name: str, inside: str, cutoff: str) -> str:
    """Return `Compat` of ir_measures, or the authors' compatibility, as a text of ours.

    Both have p = 0.95.  The sums of ir_measures end with the lists.
    """
    parameters = [word.strip() for word in split_arguments(inside) if word.strip()]
    if not any(word.replace(" ", "").startswith("p=") for word in parameters):
        parameters.append("p=0.95")
    if name.casefold() == "compat" and "truncated" not in inside:
        parameters.append("truncated=true")
    return f"RBO({', '.join(parameters)}){cutoff}"


def _with_relative(parameters: list[str]) -> str:
    """Return SetRelP if `relative=True` is a parameter of ir_measures' SetP, else SetP."""
    words = [parameter.strip() for parameter in parameters]
    others = ", ".join(word for word in words if not word.startswith("relative="))
    values = [word.partition("=")[2].casefold() for word in words if word.startswith("relative=")]
    if len(values) > 1 or values[0] not in ("true", "false"):
        raise MeasureError(f"relative of SetP must be true or false, once; got {parameters}.")
    return ("SetRelP" if values == ["true"] else "SetP") + (f"({others})" if others else "")


def _utility(match: re.Match[str]) -> str:
    """Return trec_eval's utility with its four weights as a text of ours."""
    relevant, nonrelevant, missed, rest = match.groups()
    if float(rest):
        raise MeasureError(
            f"{match[0]!r}: the fourth weight must be 0, since the number of documents in the "
            "collection is not known."
        )
    return f"SetUtility(relevant={relevant},nonrelevant={nonrelevant},missed={missed})"


def _table(text: str) -> str:
    """Return `1=3.5,2=9` or `1:3.5, 2:9` as a table of gains; other labels are their own gain."""
    entries = [GAIN.fullmatch(item) for item in text.split(",") if item.strip()]
    gains = {int(entry[1]): entry[2] for entry in entries if entry is not None}
    if not entries:
        return "linear"
    if len(gains) < len(entries) or max(gains) >= MAX_GAINS:
        raise MeasureError(
            f"gains are written {{label: gain, ...}}, with each label once, from 0 to "
            f"{MAX_GAINS - 1}; got {text.strip()!r:.200}."
        )
    return "[" + ",".join(gains.get(label, str(label)) for label in range(max(gains) + 1)) + "]"
