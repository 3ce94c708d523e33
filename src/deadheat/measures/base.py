"""What a measure is: a value with declared parameters, and three functions of tie groups."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from deadheat.errors import InputError
from deadheat.measures.parameters import Parameter, parameter
from deadheat.ties.groups import Floats, Ints, TieGroups, begins

Self = TypeVar("Self", bound="Measure")
_COMPUTED = ("expected", "variance", "at", "within", "reached")


@dataclass(frozen=True)
class Example:
    """A value of a measure that a reader can check by eye."""

    measure: str
    """The measure as it is written, with its cutoff."""
    ranked: tuple[float | None, ...]
    """Grades of the documents in the order of their ranks; None for one that nobody judged."""
    working: str
    """How the value is worked out."""
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
    whole_list: ClassVar[bool] = False
    """Whether the measure looks at the whole list, and no cutoff can be set."""

    cutoff: int | None = parameter(
        None, whole=True, at_least=1, about="k, the last rank that counts"
    )

    def __init_subclass__(cls) -> None:
        # The compiled pass of a base does not know what a measure computes otherwise.
        if "in_one_pass" not in vars(cls) and not vars(cls).keys().isdisjoint(_COMPUTED):
            cls.in_one_pass = Measure.in_one_pass  # type: ignore[method-assign]

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
            f"{name}={getattr(self, name)!r}"
            for name, declared in self.parameters().items()
            if name != "cutoff" and getattr(self, name) != declared.default
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

    def within(self, groups: TieGroups) -> Ints:
        """Per group: how many of its places count (``T``)."""
        within: Ints = np.clip(self.depth(groups)[groups.query] - groups.above, 0, groups.size)
        return within

    def reached(self, groups: TieGroups, rank: Ints, query: Ints) -> NDArray[np.bool_]:
        """Per document, of these queries: does it stand above the cutoff at these ranks."""
        return np.asarray(rank <= self.depth(groups)[query])

    def at_stake(self, groups: TieGroups, above: Ints) -> Floats:
        """Per query: at most how much of the value the places below the first `above` decide.

        Infinite, that is not known, unless a measure says otherwise; 0 past the cutoff.
        """
        return np.where(above < self.depth(groups), np.inf, 0.0)

    def in_one_pass(self, one: Any, groups: TieGroups) -> Floats | None:
        """Per query, in five rows: expected, best, worst, the value under the tie rule, variance.

        `one` holds the groups as the compiled passes take them. None unless a measure has a pass;
        what follows gives the same.
        """
        return None

    @abstractmethod
    def expected(self, groups: TieGroups) -> Floats:
        """Per query: the mean over all orders of tied documents."""

    @abstractmethod
    def variance(self, groups: TieGroups) -> Floats | None:
        """Per query: the variance over all orders of tied documents; None if not known."""

    @abstractmethod
    def at(self, groups: TieGroups, rank: Ints) -> Floats:
        """Per query: the value when the documents of interest stand at these ranks.

        Of several rows of ranks, each gives a row of values.
        """


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

    def first_ranks(self, groups: TieGroups, rank: Ints) -> tuple[Ints, Ints]:
        """Give every query with a relevant document retrieved, and the rank of the first of them.

        The rank is 0 where it is past the cutoff.
        """
        index, query = groups.relevant_documents(self.rel)
        start = starts(query)
        query = query[start]
        if not len(query):
            return query, rank[..., :0]
        first = np.minimum.reduceat(rank[..., index], start, axis=-1)
        return query, first * self.reached(groups, first, query)


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


def first_groups(groups: TieGroups, rel: float | None) -> Ints:
    """Index of the first group with a relevant document, for each query that has one."""

    def compute() -> Ints:
        relevant = groups.relevant(rel).nonzero()[0]
        return relevant[starts(groups.query[relevant])]

    return groups.memo(("first_groups", rel), compute)


def starts(query: Ints) -> Ints:
    """Index of the first entry of each query, in entries that stand in the order of queries."""
    return begins(query).nonzero()[0]


def found_above(groups: TieGroups, above: Ints, rel: float | None) -> NDArray[np.bool_]:
    """Per query: does a tie group among the first `above` places hold a relevant document."""
    first = first_groups(groups, rel)
    found = np.zeros(groups.n_queries, bool)
    query = groups.query[first]
    found[query] = groups.above[first] < above[query]
    return found


def rank_order(query: Ints, rank: Ints) -> Ints:
    """Order documents by their ranks inside each query; of several rows of ranks, each row."""
    return np.lexsort((rank, np.broadcast_to(query, rank.shape)))


def spread(groups: TieGroups, values: NDArray[Any], query: Ints) -> Floats:
    """Values of some queries as an array over all queries, 0 elsewhere; or such rows of values."""
    if len(query) == groups.n_queries:
        return values.astype(np.float64, copy=False)
    out = np.zeros((*values.shape[:-1], groups.n_queries))
    out[..., query] = values
    return out


def ratio(numerator: NDArray[Any], denominator: NDArray[Any]) -> Floats:
    """Divide, with 0 where the denominator is 0 (a query without relevant documents)."""
    positive = denominator > 0
    if np.count_nonzero(positive) == positive.size:
        return np.asarray(numerator / denominator, np.float64)
    out = np.zeros(numerator.shape)
    np.divide(numerator, denominator, out=out, where=positive, casting="unsafe")
    return out
