"""Describe all measures, from their declarations, for the terminal and the documentation.

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
    entries = [_wrap(part, "  ") for measure in MEASURES for part in _describe(measure)]
    return "\n\n".join([*map(_wrap, INTRODUCTION.split("\n\n")), *entries])


def as_markdown() -> str:
    """Define all measures as a page of the documentation."""
    entries = [part for measure in MEASURES for part in _describe(measure)]
    return "\n\n".join(["# Measures", INTRODUCTION, *entries]).replace("``", "`") + "\n"


def _describe(measure: Measure) -> list[str]:
    """Give the paragraphs on a measure, in Markdown."""
    parameters = [
        f"- ``{name}={declared.default!r}``: {_meaning(declared)}"
        for name, declared in measure.parameters().items()
    ]
    parts = [
        f"## {measure.name}",
        " ".join((type(measure).__doc__ or "").split()),
        f"    {measure.formula}",
        f"Example: {_worked(measure.example)}",
        "\n".join(parameters),
    ]
    names = ", ".join(f"``{alias}``" for alias in measure.aliases)
    return [*parts, f"Other names: {names}."] if names else parts


def _meaning(declared: Parameter) -> str:
    """Describe the meaning and the allowed values of a parameter."""
    if not declared.choices:
        return f"{declared.rule}: {declared.about}."
    choices = "; ".join(f"``{word!r}``, {meaning}" for word, meaning in declared.choices.items())
    return f"{declared.about}: {choices}."


def _worked(example: Example) -> str:
    """Describe the ranked list of an example, and how its value is computed."""
    unretrieved = f"; not retrieved {_grades(example.unretrieved)}" if example.unretrieved else ""
    return (
        f"ranked grades {_grades(example.ranked)}{unretrieved}: "
        f"``{example.measure}`` is {example.working} = {example.value:g}."
    )


def _grades(grades: tuple[float | None, ...]) -> str:
    return ", ".join("unjudged" if grade is None else f"{grade:g}" for grade in grades)


def _wrap(paragraph: str, indent: str = "") -> str:
    """Wrap a paragraph for the terminal; the further lines of formulas and items are indented."""
    if paragraph.startswith("## "):
        return paragraph.removeprefix("## ")
    lines = []
    for line in paragraph.replace("``", "").splitlines():
        hanging = "    " if line.startswith(("    ", "- ")) else ""
        wrapped = textwrap.fill(
            indent + line, 80, subsequent_indent=indent + hanging, break_on_hyphens=False
        )
        lines.append(wrapped)
    return "\n".join(lines)


if __name__ == "__main__":
    sys.stdout.buffer.write(as_markdown().encode())
