"""Options of an evaluation, and the text for each choice."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Literal, TypedDict

from deadheat.errors import InputError, suggest

if TYPE_CHECKING:
    from deadheat._internal.dtypes import Format

TieRule = Literal["input", "id_desc", "id_asc", "rank", "pytrec_eval"]
"""Name of a tie rule."""
QueryPolicy = Literal["judged", "intersection", "all"]
"""Which queries count."""
NanPolicy = Literal["raise", "last"]
"""How NaN scores are handled."""

_RULES: dict[TieRule, tuple[str, str]] = {
    "input": (
        "input order",
        "the order of the input: the paper, Python's sorted, BEIR's own MRR",
    ),
    "id_desc": (
        "descending document ids",
        "document id, descending bytes: trec_eval 10, MTEB's MRR",
    ),
    "id_asc": (
        "ascending document ids",
        "document id, ascending bytes: sentence-transformers' IR evaluator, RR@k of ir_measures",
    ),
    "rank": ("the rank column", "the rank column of the run"),
    "pytrec_eval": (
        "descending document ids, scores cast to float32",
        "scores cast to float32, then id descending: pytrec_eval, trec_eval 9, and so nDCG, MAP, "
        "Recall and P in MTEB and BEIR",
    ),
}
TIE_RULES: dict[TieRule, str] = {rule: text for rule, (_, text) in _RULES.items()}
"""Per tie rule: the sort key of tied documents, and the tools that use it."""
QUERY_POLICIES: dict[QueryPolicy, str] = {
    "judged": "every judged query with a relevant document; queries missing from the run score 0",
    "intersection": "queries that are both judged and in the run, as trec_eval averages",
    "all": "every judged query; queries without a relevant document score 0",
}
NAN_POLICIES: tuple[NanPolicy, ...] = ("raise", "last")
SCORE_PRECISIONS = {"float32": "fp32", "fp16": "fp16", "bf16": "bf16"}
"""Precisions to which an evaluator may round scores, and the number format of each."""


class EvalOptions(TypedDict, total=False):
    """The fields of `EvalSettings` as keyword arguments of a public function."""

    tie_break: TieRule
    tie_tolerance: float
    queries: QueryPolicy
    nan: NanPolicy
    score_dtype: object


@dataclass(frozen=True)
class EvalSettings:
    """Options of an evaluation; invalid values raise `InputError`.

    >>> EvalSettings(score_dtype="float32").score_dtype
    'fp32'
    """

    tie_break: str = "input"
    """The order of tied documents in the oblivious value: one of `TIE_RULES`."""
    tie_tolerance: float = 0.0
    """Scores at most this far apart are tied, and so are chains of such scores. The oblivious
    value ignores the tolerance."""
    queries: str = "judged"
    """Which queries are averaged: ``"judged"``, every judged query with a relevant document;
    ``"intersection"``, the judged queries of the run; ``"all"``, every judged query."""
    nan: str = "raise"
    """``"raise"``: NaN scores are an error; ``"last"``: they rank below all others, tied."""
    score_dtype: str | None = None
    """Round scores to this precision first, as some evaluators do: ``"float32"`` (trec_eval 9 and
    pytrec_eval), ``"fp16"`` or ``"bf16"``. All views then use the ties of the rounded scores. None
    does not round."""

    @classmethod
    def from_options(cls, options: EvalOptions) -> EvalSettings:
        """Return the settings of a public function; raise `TypeError` for an unknown option."""
        known = cls.__dataclass_fields__
        for name in options:
            if name not in known:
                raise TypeError(f"unknown option {name!r}{suggest(name, list(known))}")
        return cls(**options)  # type: ignore[arg-type]

    def __post_init__(self) -> None:
        choices: dict[str, Iterable[str]] = {
            "tie_break": TIE_RULES,
            "queries": QUERY_POLICIES,
            "nan": NAN_POLICIES,
        }
        for name, known in choices.items():
            if (value := getattr(self, name)) not in tuple(known):
                raise InputError(f"{name} must be one of {', '.join(known)}, not {value!r}")
        if not isinstance(self.tie_tolerance, Real) or not self.tie_tolerance >= 0:
            raise InputError(
                f"tie_tolerance must be a number, 0 or more, not {self.tie_tolerance!r}"
            )
        object.__setattr__(self, "tie_tolerance", float(self.tie_tolerance))
        if self.score_dtype is not None:
            object.__setattr__(self, "score_dtype", _parse_score_dtype(self.score_dtype))

    @property
    def score_format(self) -> Format | None:
        """The number format to which scores are rounded; None does not round."""
        from deadheat._internal.dtypes import FORMATS

        return None if self.score_dtype is None else FORMATS[self.score_dtype]

    @property
    def needs_ranks(self) -> bool:
        """Whether the tie rule needs the rank column of a run."""
        return self.tie_break == "rank"

    @property
    def tie_order(self) -> str:
        """The sort key of the tie rule, as text."""
        return _RULES[self.tie_break][0]  # type: ignore[index]

    @property
    def in_tie_order(self) -> str:
        """The sort key with its preposition: ``in input order``, ``by the rank column``."""
        return f"{'in' if self.tie_break == 'input' else 'by'} {self.tie_order}"

    @property
    def rounding(self) -> str:
        """The rounding of scores as text, such as ``rounded to fp32``; empty without rounding."""
        return f"rounded to {self.score_dtype}" if self.score_dtype else ""

    @property
    def note(self) -> str:
        """The tie rule of the oblivious value and the rounding of scores, for notes under a table.

        >>> EvalSettings("id_desc", score_dtype="float32").note
        'oblivious: ties by descending document ids; all views: scores rounded to fp32'
        """
        seen = f"; all views: scores {self.rounding}" if self.rounding else ""
        return f"oblivious: ties {self.in_tie_order}{seen}"


def _parse_score_dtype(score_dtype: object) -> str:
    """Return the name of the number format of a precision."""
    from deadheat._internal.dtypes import parse_format

    name = parse_format(score_dtype).name
    if name not in SCORE_PRECISIONS.values():
        raise InputError(f"score_dtype must be one of {', '.join(SCORE_PRECISIONS)}, not {name}")
    return name
