"""The base classes of measures: parameters, and the functions of tie groups."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from deadheat.errors import InputError
from deadheat.measures.parameters import Parameter, parameter
from deadheat.ties import Floats, Ints, TieGroups

Self = TypeVar("Self", bound="Measure")


@dataclass(frozen=True)
class Example:
    """A small example of a measure, with its value."""

    measure: str
    """Name of the measure, with its cutoff."""
    ranked: tuple[float | None, ...]
    """Grades of the documents in the order of their ranks; None for an unjudged document."""
    working: str
    """The calculation of the value, in Python syntax except for the signs ``·``, ``−``, ``^``."""
    value: float
    """The value, rounded to four digits."""
    unretrieved: tuple[float, ...] = ()
    """Grades of judged documents that were not retrieved."""


@dataclass(frozen=True, repr=False)
class Measure(ABC):
    """A measure of retrieval quality, with its parameters.

    ``nDCG @ 10`` returns a measure with a cutoff, ``nDCG(gain="exp")`` one with another parameter.
    Measures with equal parameters are equal. `parse_measure` reads the `repr`.
    """

    name: ClassVar[str]
    """Name of the measure."""
    formula: ClassVar[str]
    """Definition of the measure, a formula in plain text."""
    example: ClassVar[Example]
    """An example with its value."""
    aliases: ClassVar[tuple[str, ...]] = ()
    """Names of the measure in other tools, in lower case."""
    needs_judged: ClassVar[bool] = False
    """Whether the measure also uses judged documents that are not relevant."""
    has_variance: ClassVar[bool] = True
    """Whether the variance over all orders of tied documents is computed."""
    can_exceed_one: ClassVar[bool] = False
    """Whether a value can be above 1."""
    whole_list: ClassVar[bool] = False
    """Whether the measure always uses the whole list and has no cutoff."""

    cutoff: int | None = parameter(
        None, whole=True, at_least=1, about="k, the last rank that counts"
    )

    def __post_init__(self) -> None:
        for name, declared in self.parameters().items():
            declared.check(f"{name} of {self.name}", getattr(self, name))

    @classmethod
    def parameters(cls) -> dict[str, Parameter]:
        """Return the declared parameters by name."""
        declared = {f.name: f.metadata["parameter"] for f in fields(cls)}
        if cls.whole_list:
            del declared["cutoff"]
        return declared

    def __matmul__(self: Self, cutoff: int) -> Self:
        """Return the measure with this cutoff: ``nDCG @ 10``."""
        return self.__call__(cutoff=cutoff)

    def __call__(self: Self, **parameters: Any) -> Self:
        """Return the measure with these parameters: ``MAP(divisor="min")``."""
        known = self.parameters()
        for name, value in parameters.items():
            if name not in known and not (name == "cutoff" and value is None):
                raise InputError(f"{self.name} has no parameter {name!r}: use {', '.join(known)}")
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
        """Return, per query, the last rank that counts."""
        if self.cutoff is None:
            return groups.retrieved
        depth = np.empty(groups.n_queries, np.int64)
        depth.fill(self.cutoff)
        return depth

    def at_stake(self, groups: TieGroups, above: Ints) -> Floats:
        """Return, per query, the largest part of the value that ranks after `above` can contribute.

        Infinity means unknown (the default); 0 beyond the cutoff.
        """
        return np.where(above < self.depth(groups), np.inf, 0.0)

    def rank_weights(self, groups: TieGroups) -> RankWeights | None:
        """Return the measure as a sum of rank weights; None if it is no such sum, or unknown.

        With it, values under many tie orders are fast to compute.
        """
        return None

    @abstractmethod
    def views(self, groups: TieGroups) -> Floats:
        """Return five rows per query: expected, best, worst, oblivious, variance.

        The rows are in the order of `deadheat.measures.kernel.KERNEL_VIEWS`. Oblivious is the value
        under the tie rule; best is the larger of the two extreme values.
        """


class RankWeights(NamedTuple):
    """A measure that is the sum of ``coefficient · weight(rank)`` over documents.

    The documents that count are assigned the ranks of their group in ascending order if
    `ascending`, else in random order.
    """

    counts: NDArray[np.bool_]
    """Per document: whether it counts."""
    coefficient: Floats
    """Per document: its coefficient."""
    weight: Callable[[Floats], Floats]
    ascending: bool


@dataclass(frozen=True, repr=False)
class BinaryMeasure(Measure):
    """Base of the measures for which a document is either relevant or not."""

    rel: float | None = parameter(
        None,
        above=0,
        about="the lowest relevant grade; default: every grade above 0 is relevant",
    )

    @property
    def lowest_relevant(self) -> float:
        """The lowest relevant grade: `rel`, or the smallest positive number."""
        return 5e-324 if self.rel is None else self.rel

    def n_relevant(self, groups: TieGroups) -> Floats:
        """Return, per query, the number of relevant documents, retrieved or not (``N``)."""
        query = groups.ideal_query
        if self.rel is not None:
            query = query[groups.ideal_grade >= self.rel]
        return np.bincount(query, minlength=groups.n_queries).astype(np.float64)

    def count_relevant(self, groups: TieGroups) -> tuple[NDArray[np.bool_], Ints]:
        """Return, per document, whether it is relevant, and the relevant ones up to its rank."""
        query, relevant = groups.document_query, groups.grade >= self.lowest_relevant
        before: Ints = np.cumsum(relevant) - relevant
        n: Ints = before - before[np.searchsorted(query, query)] + 1
        return relevant, n


def exp_gain(measure: Measure, grade: Floats) -> Floats:
    """Return 2^grade − 1; raise `InputError` for a grade that is too high."""
    if grade.max(initial=0) > 500:
        raise InputError(
            f"{measure} computes 2 to the power of a grade, and the judgements have the grade "
            f"{grade.max():g}, which is too high: check the grades"
        )
    # Whole grades give whole numbers. Below 1, subtracting 1 would lose digits of small grades.
    return np.where(grade < 1, np.expm1(grade * np.log(2)), np.exp2(grade) - 1)
