"""What a measure is: a value with declared parameters, and a function of tie groups."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from deadheat.errors import InputError
from deadheat.measures.kernel import relevant_groups
from deadheat.measures.parameters import Parameter, parameter
from deadheat.ties import Floats, Ints, TieGroups

Self = TypeVar("Self", bound="Measure")


@dataclass(frozen=True)
class Example:
    """A value of a measure that a reader can check by eye."""

    measure: str
    """The measure as it is written, with its cutoff."""
    ranked: tuple[float | None, ...]
    """Grades of the documents in the order of their ranks; None for one without a judgement."""
    working: str
    """How the value is worked out, as Python writes it except for the signs ``·``, ``−``, ``^``."""
    value: float
    """The value, to four digits."""
    unretrieved: tuple[float, ...] = ()
    """Grades of judged documents that were not retrieved."""


@dataclass(frozen=True, repr=False)
class Measure(ABC):
    """A measure of retrieval quality, with its parameters.

    Measures are values: ``nDCG @ 10`` sets the cutoff, ``nDCG(gain="exp")`` any other
    parameter, equal parameters make equal measures, and the `repr` parses back.
    """

    name: ClassVar[str]
    """How the measure is written."""
    formula: ClassVar[str]
    """Its definition as a formula in plain text."""
    example: ClassVar[Example]
    """One value, worked out."""
    aliases: ClassVar[tuple[str, ...]] = ()
    """Other names that users of other tools know it by, in lower case."""
    needs_judged: ClassVar[bool] = False
    """Whether judged documents that are not relevant are of interest, too."""
    has_variance: ClassVar[bool] = True
    """Whether the variance over all orders of tied documents is known."""
    can_exceed_one: ClassVar[bool] = False
    """Whether a value can be above 1."""
    whole_list: ClassVar[bool] = False
    """Whether the measure looks at the whole list, and no cutoff can be set."""

    cutoff: int | None = parameter(
        None, whole=True, at_least=1, about="k, the last rank that counts"
    )

    def __post_init__(self) -> None:
        for name, declared in self.parameters().items():
            declared.check(f"{name} of {self.name}", getattr(self, name))

    @classmethod
    def parameters(cls) -> dict[str, Parameter]:
        """Give the declared parameters by name."""
        declared = {f.name: f.metadata["parameter"] for f in fields(cls)}
        if cls.whole_list:
            del declared["cutoff"]
        return declared

    def __matmul__(self: Self, cutoff: int) -> Self:
        """Set the cutoff: ``nDCG @ 10``."""
        return self.__call__(cutoff=cutoff)

    def __call__(self: Self, **parameters: Any) -> Self:
        """Set parameters: ``MAP(divisor="min")``."""
        known = self.parameters()
        for name, value in parameters.items():
            if name not in known and not (name == "cutoff" and value is None):
                raise InputError(
                    f"{self.name} has no parameter {name!r}: it has {', '.join(known)}"
                )
        plain = {n: v.item() if isinstance(v, np.generic) else v for n, v in parameters.items()}
        return replace(self, **plain)

    def __repr__(self) -> str:
        changed = [
            f"{f.name}={value!r}"
            for f in fields(self)
            if (value := getattr(self, f.name)) != f.default and f.name != "cutoff"
        ]
        arguments = f"({', '.join(changed)})" if changed else ""
        return self.name + arguments + (f"@{self.cutoff}" if self.cutoff else "")

    def depth(self, groups: TieGroups) -> Ints:
        """Per query: the last rank that counts."""
        if self.cutoff is None:
            return groups.retrieved
        depth = np.empty(groups.n_queries, np.int64)
        depth.fill(self.cutoff)
        return depth

    def at_stake(self, groups: TieGroups, above: Ints) -> Floats:
        """Per query: at most how much of the value the places below the first `above` decide.

        Infinite, that is not known, unless a measure says otherwise; 0 past the cutoff.
        """
        return np.where(above < self.depth(groups), np.inf, 0.0)

    def rank_weights(self, groups: TieGroups) -> RankWeights | None:
        """Return how the measure adds up weights of ranks; None if it does not, or is not known.

        It makes the value under many tie orders cheap to compute.
        """
        return None

    @abstractmethod
    def views(self, groups: TieGroups) -> Floats:
        """Per query, in five rows: expected, best, worst, oblivious, variance.

        The order of the rows is that of `deadheat.measures.kernel.VIEWS`; oblivious is the value
        under the tie rule, and best the larger of the two extreme values.
        """


class RankWeights(NamedTuple):
    """A measure that adds up ``coefficient · weight(rank)`` over documents.

    The documents that count have the ranks of their group in ascending order if `ascending`, and in
    random order otherwise.
    """

    counts: NDArray[np.bool_]
    """Per document: whether it counts."""
    coefficient: Floats
    """Per document."""
    weight: Callable[[Floats], Floats]
    ascending: bool


@dataclass(frozen=True, repr=False)
class BinaryMeasure(Measure):
    """Base of the measures to which a document is either relevant or not."""

    rel: float | None = parameter(
        None,
        above=0,
        about="the lowest relevant grade; unless given, every grade above 0 is relevant",
    )

    @property
    def lowest_relevant(self) -> float:
        """The lowest grade that is relevant; there is none between 0 and the smallest number."""
        return 5e-324 if self.rel is None else self.rel

    def n_relevant(self, groups: TieGroups) -> Floats:
        """Per query: relevant documents the judgements know, retrieved or not (``N``)."""
        query = groups.ideal_query
        if self.rel is not None:
            query = query[groups.ideal_grade >= self.rel]
        return np.bincount(query, minlength=groups.n_queries).astype(np.float64)

    def count_relevant(self, groups: TieGroups) -> tuple[NDArray[np.bool_], Ints]:
        """Per document: is it relevant, and how many of its query are up to it, in rank order."""
        query, relevant = groups.document_query, groups.grade >= self.lowest_relevant
        before: Ints = np.cumsum(relevant) - relevant
        n: Ints = before - before[np.searchsorted(query, query)] + 1
        return relevant, n

    def is_undecided(self, groups: TieGroups, above: Ints) -> NDArray[np.bool_]:
        """Per query: is no relevant document in the first `above` places, and a place left."""
        relevant = relevant_groups(groups, self.lowest_relevant).relevant
        holds = (relevant > 0) & (groups.above < above[groups.query])
        found = np.bincount(groups.query[holds], minlength=groups.n_queries) > 0
        return (above < self.depth(groups)) & ~found


@lru_cache
def family(measure: Measure) -> Measure:
    """Give the measure without its cutoff."""
    return measure(cutoff=None)


def exp_gain(measure: Measure, grade: Floats) -> Floats:
    """2^grade − 1, for grades from 0 of which it can be computed."""
    if grade.max(initial=0) > 500:
        raise InputError(
            f"{measure} takes 2 to the power of a grade, and the judgements hold the grade "
            f"{grade.max():g}: is that a grade?"
        )
    # Whole grades give whole numbers; below 1, subtracting 1 would cost the digits of small grades.
    return np.where(grade < 1, np.expm1(grade * np.log(2)), np.exp2(grade) - 1)
