"""Generate the help on all measures, for the terminal and the documentation.

``python -m deadheat.measures.help > docs/measures.md`` writes the page of the documentation.
"""

from __future__ import annotations

import sys
import textwrap

from deadheat.measures import MEASURES
from deadheat.measures.base import Measure

INTRODUCTION = """\
A measure is a value of one ranked list of documents; results are means over queries. The \
definitions below are for a list without ties. If documents tie, ``expected`` is the mean of \
the measure over all orders of the tied documents, ``best`` its largest and ``worst`` its \
smallest value.

k is the cutoff: ``nDCG@10`` uses the ranks 1 to 10, ``nDCG`` the whole list. N is the number of \
relevant documents of the query, retrieved or not. Other parameters are set by name: \
``MAP(rel=2, divisor='min')@3``."""


def as_text() -> str:
    """Return the page wrapped for a terminal of 80 columns."""
    lines = []
    for line in as_markdown().replace("`", "").splitlines():
        hanging = "    " if line.startswith(("    ", "- ")) else ""
        lines.append(textwrap.fill(line, 80, subsequent_indent=hanging, break_on_hyphens=False))
    return "\n".join(lines)


def as_markdown() -> str:
    """Return the help on all measures as a page of the documentation."""
    entries = [part for measure in MEASURES for part in _describe(measure)]
    return "\n\n".join(["# Measures", INTRODUCTION, *entries]).replace("``", "`") + "\n"


def _describe(measure: Measure) -> list[str]:
    """Return the paragraphs on a measure, in Markdown."""
    parameters = []
    for name, declared in measure.parameters().items():
        about = f"{declared.rule}: {declared.about}"
        if declared.choices:
            choices = (f"``{word!r}``, {meaning}" for word, meaning in declared.choices.items())
            about = f"{declared.about}: {'; '.join(choices)}"
        parameters.append(f"- ``{name}={declared.default!r}``: {about}.")
    example = measure.example
    ranked, unretrieved = (
        ", ".join("unjudged" if grade is None else f"{grade:g}" for grade in grades)
        for grades in (example.ranked, example.unretrieved)
    )
    parts = [
        f"## {measure.name}",
        " ".join((type(measure).__doc__ or "").split()),
        "    " + measure.formula.replace(", with ", ",\n    with "),
        f"Example: ranked grades {ranked}{'; not retrieved ' * bool(unretrieved)}{unretrieved}: "
        f"``{example.measure}`` is {example.working} = {example.value:g}.",
        "\n".join(parameters),
    ]
    names = ", ".join(f"``{alias}``" for alias in measure.aliases)
    return [*parts, f"Other names: {names}."] if names else parts


if __name__ == "__main__":
    sys.stdout.buffer.write(as_markdown().encode())
