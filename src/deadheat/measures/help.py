"""What every measure is, told from its declaration: for the terminal and the documentation.

``python -m deadheat.measures.help > docs/measures.md`` writes the page of the documentation.
"""

from __future__ import annotations

import sys
import textwrap

from deadheat.measures import MEASURES
from deadheat.measures.base import Example, Measure
from deadheat.measures.parameters import Parameter

INTRODUCTION = """\
A measure is a value of one ranked list of documents; results are means over queries. The \
definitions below are of a list without ties. Where documents tie, ``expected`` is the mean of \
the measure over all their orders, ``best`` and ``worst`` its largest and its smallest value.

k is the cutoff: ``nDCG@10`` looks at the ranks 1 to 10, ``nDCG`` at the whole list. N is the \
number of relevant documents of the query, retrieved or not. Other parameters are given by name: \
``MAP(rel=2, divisor='min')@3``."""


def as_text() -> str:
    """Define all measures for a terminal of 80 columns."""
    introduction = [_wrap(paragraph) for paragraph in INTRODUCTION.split("\n\n")]
    return "\n\n".join([*introduction, *map(_entry_as_text, MEASURES)])


def as_markdown() -> str:
    """Define all measures as a page of the documentation."""
    page = "\n\n".join(["# Measures", INTRODUCTION, *map(_entry_as_markdown, MEASURES)])
    return page.replace("``", "`") + "\n"


def _entry_as_text(measure: Measure) -> str:
    heading = measure.name + (f"  (also: {', '.join(measure.aliases)})" if measure.aliases else "")
    parameters = [
        _wrap(f"{name}={declared.default!r}  {_meaning(declared)}", indent=2, hanging=4)
        for name, declared in measure.parameters().items()
    ]
    example = _wrap(f"Example: {_worked(measure.example)}", indent=2, hanging=4)
    return "\n\n".join(
        [
            f"{heading}\n{_wrap(_definition(measure), indent=2)}",
            _wrap(measure.formula, indent=4, hanging=4),
            "\n".join([*parameters, example]),
        ]
    )


def _entry_as_markdown(measure: Measure) -> str:
    names = ", ".join(f"``{alias}``" for alias in measure.aliases)
    rows = [
        f"| ``{name}`` | ``{declared.default!r}`` | {_meaning(declared)} |"
        for name, declared in measure.parameters().items()
    ]
    parts = [
        f"## {measure.name}",
        _definition(measure),
        f"    {measure.formula}",
        f"Example: {_worked(measure.example)}",
        "\n".join(["| parameter | unless given | what it is |", "|---|---|---|", *rows]),
        f"Other names: {names}." if names else "",
    ]
    return "\n\n".join(part for part in parts if part)


def _definition(measure: Measure) -> str:
    return " ".join((type(measure).__doc__ or "").split())


def _meaning(declared: Parameter) -> str:
    """Tell what a parameter means and what it may be."""
    if not declared.choices:
        return f"{declared.rule}: {declared.about}."
    choices = "; ".join(f"``{word!r}``, {meaning}" for word, meaning in declared.choices.items())
    return f"{declared.about}: {choices}."


def _worked(example: Example) -> str:
    """Tell the list of an example, and how its value is worked out."""
    unretrieved = f"; not retrieved {_grades(example.unretrieved)}" if example.unretrieved else ""
    return (
        f"ranked grades {_grades(example.ranked)}{unretrieved}: "
        f"``{example.measure}`` is {example.working} = {example.value:g}."
    )


def _grades(grades: tuple[float | None, ...]) -> str:
    return ", ".join("unjudged" if grade is None else f"{grade:g}" for grade in grades)


def _wrap(text: str, *, indent: int = 0, hanging: int = 0) -> str:
    return textwrap.fill(
        text.replace("``", ""),
        width=80,
        initial_indent=" " * indent,
        subsequent_indent=" " * (indent + hanging),
        break_on_hyphens=False,
    )


if __name__ == "__main__":
    sys.stdout.buffer.write(as_markdown().encode())
