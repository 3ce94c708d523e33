"""Parse names of measures: own names, and those of trec_eval, ir_measures, MTEB, ranx and trm."""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Iterable
from functools import lru_cache

from deadheat.errors import InputError
from deadheat.measures import DCG, MEASURES, RBP, Recall, Success, nDCG
from deadheat.measures.base import Measure

# No character of one part can start the next part, so matching takes linear time.
_SHAPE = re.compile(r"([A-Za-z][\w.,\-\s]*)(?:\((.*)\)\s*)?(?:@\s*(.+))?", re.DOTALL)
_TREC_CUTOFF = re.compile(r"(.+?)(?:_cut|_at)?[_.](\d+(?:,\d+)*)")
_RBP = re.compile(r"rbp(_p|\.)(\d+)")  # rbp_p5 on TREC-COVID's leaderboards, rbp.95 in ranx
_RANX_LEVEL = re.compile(r"([^()]+)-l(\d{1,9})\s*")  # map@100-l2: relevant from grade 2 on
# In ir_measures the value of the gain is the whole discount formula.
_FOREIGN_PARAMETERS: dict[str, tuple[str, dict[str, str]]] = {
    "dcg": ("gain", {"log2": "linear", "exp-log2": "exp"})
}


def _plain(name: str) -> str:
    return re.sub(r"[\s\-]+", "_", name.strip().lower())


_NAMES = {_plain(name): m for m in MEASURES for name in (m.name, *m.aliases)} | {
    "accuracy": Success,  # with a cutoff, as in sentence-transformers
    "dcg_burges": DCG(gain="exp"),  # ranx
    "ndcg_burges": nDCG(gain="exp"),
}


def parse_measure(text: str) -> Measure:
    """Parse one measure.

    >>> parse_measure("ndcg_cut_10"), parse_measure("AP(rel=2)@100"), parse_measure("P_5")
    (nDCG@10, MAP(rel=2)@100, Precision@5)
    """
    measures = _expand(text)
    if len(measures) > 1:
        raise InputError(f"{text!r:.100} names {len(measures)} measures, but one is expected")
    return measures[0]


def parse_measures(measures: str | Measure | Iterable[object]) -> list[Measure]:
    """Parse measures; return each once, in the order given.

    A string may have several measures, and several cutoffs of each. Measures of ir_measures are
    parsed by their names.

    >>> parse_measures(["nDCG@5,10,mrr@10", "ndcg_at_10"])
    [nDCG@5, nDCG@10, MRR@10]
    """
    if isinstance(measures, (str, Measure)):
        measures = [measures]
    if not isinstance(measures, Iterable):
        raise InputError(f"measures must be names such as 'nDCG@10', not {measures!r:.100}")
    named = (m if isinstance(m, (str, Measure)) else _read_name(m) for m in measures)
    return list(_parse(tuple(named)))


def _read_name(measure: object) -> str:
    """Return the name of a measure of another library."""
    name = str(measure)
    if type(measure).__module__.startswith("ir_measures") and name.startswith("Acc"):
        raise InputError(f"{name} of ir_measures is not what others call accuracy: Success")
    return name


@lru_cache(maxsize=256)
def _parse(measures: tuple[str | Measure, ...]) -> list[Measure]:
    parsed: list[Measure] = []
    for measure in measures:
        parsed += [measure] if isinstance(measure, Measure) else _expand(measure)
    if not parsed:
        raise InputError("no measure given: give at least one, for example nDCG@10")
    return list(dict.fromkeys(parsed))


def _expand(text: str) -> list[Measure]:
    """Parse a text with several measures; return one measure per cutoff."""
    if len(several := _split(text)) > 1:
        return [measure for part in several for measure in _expand(part)]
    if level := _RANX_LEVEL.fullmatch(text):
        return [measure(rel=int(level[2])) for measure in _expand(level[1])]
    if _plain(text) == "accuracy":
        return [Recall @ 1]  # in MTEB, where accuracy has no cutoff
    shape = _SHAPE.fullmatch(text.strip())
    if shape is None:
        raise InputError(
            f"cannot read the measure {text!r:.100}: write, for example, nDCG@10 or MAP(rel=2)@5"
        )
    name, arguments, cutoffs = shape.groups()
    measure = _NAMES.get(_plain(name))
    if rbp := _RBP.fullmatch(_plain(name)):
        measure = RBP(p=float("0." + rbp[2]), gain="scaled" if rbp[1] == "_p" else "linear")
    if measure is None and cutoffs is None and (trec := _TREC_CUTOFF.fullmatch(_plain(name))):
        # RBP has a probability after its name, not a cutoff.
        measure, cutoffs = None if trec[1] == "rbp" else _NAMES.get(trec[1]), trec[2]
    if measure is None:
        raise InputError(f"unknown measure {text!r:.100}{_suggestion(name)}")
    if arguments:
        measure = measure(**_arguments(measure, text, arguments))
    if cutoffs is None:
        return [measure]
    measures = []
    for k in cutoffs.split(","):
        try:
            cutoff = int(k)
        except ValueError:
            raise InputError(
                f"the cutoff of {text!r:.100} must be a whole number, not {k!r:.100}; name one "
                "measure at a time"
            ) from None
        measures.append(measure @ cutoff)
    return measures


def _split(text: str) -> list[str]:
    """Split a text before every measure in it.

    >>> _split("nDCG@5,10,MAP(rel=2, divisor='N')@5, MRR")
    ['nDCG@5,10', "MAP(rel=2, divisor='N')@5", ' MRR']
    """
    parts: list[str] = []
    open_ = 0
    for piece in text.split(","):
        if parts and (open_ or not piece.lstrip()[:1].isalpha()):
            parts[-1] += f",{piece}"  # another parameter, or another cutoff
        else:
            parts.append(piece)
        open_ = max(0, open_ + piece.count("(") - piece.count(")"))
    return parts


def _arguments(measure: Measure, text: str, arguments: str) -> dict[str, object]:
    """Parse the parameters of `measure`, such as ``rel=2, gain='exp'``; refuse repetitions."""
    try:
        call = ast.parse(f"f({arguments})", mode="eval").body
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.args:
            raise ValueError
        keywords = [(str(k.arg), ast.literal_eval(k.value)) for k in call.keywords]
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        rules = ", ".join(f"{name} ({p.rule})" for name, p in measure.parameters().items())
        raise InputError(
            f"cannot read the parameters of {text!r:.100}: write them by name, for example "
            f"(rel=2, gain='exp'); {measure.name} has {rules}"
        ) from None
    values: dict[str, object] = {}
    for keyword, value in keywords:
        name, words = _FOREIGN_PARAMETERS.get(keyword, (keyword, {}))
        if name in values:
            raise InputError(f"{name} is given twice in {text!r:.100}: keep one")
        values[name] = words.get(value, value) if isinstance(value, str) else value
    return values


def _suggestion(name: str) -> str:
    stem = re.sub(r"(_cut|_at)?[_.]?$", "", _plain(name).rstrip("0123456789"))
    near = difflib.get_close_matches(stem, _NAMES, n=1, cutoff=0.5)
    known = ", ".join(m.name for m in MEASURES)
    hint = f": did you mean {_NAMES[near[0]].name}?" if near else ""
    return f"{hint} (known: {known}; with a cutoff: nDCG@10)"
