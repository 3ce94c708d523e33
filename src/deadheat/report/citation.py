"""Write results for a paper: a sentence, a table, a paragraph for the appendix, BibTeX."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from deadheat._internal.packages import own_version
from deadheat._internal.remarks import counted_range, lines
from deadheat.evaluation import Result, Summary, name_results, results_table
from deadheat.settings import QUERY_POLICIES
from deadheat.tables import Heading, Prose, Table, Verbatim, number, render

PAPER = """\
@misc{yang2026reliable,
  title  = {Reliable Evaluation Protocol for Low-Precision Retrieval},
  author = {Yang, Kisu and Jang, Yoonna and Jang, Hwanseok and Choi, Kenneth
            and Augenstein, Isabelle and Lim, Heuiseok},
  year   = {2026},
  url    = {https://arxiv.org/abs/2508.03306}
}"""
_SOFTWARE = """\
@misc{{deadheat,
  title  = {{deadheat: trustworthy evaluation of retrieval systems
            whose scores tie}},
  author = {{{{The deadheat authors}}}},
  note   = {{Version {version}}},
  year   = {{2026}}
}}"""
_SHOWN = ("run", "measure", "oblivious", "expected", "range", "bias")
"""Columns of a paper's table, if the results have them."""


def bibtex() -> str:
    """Return the BibTeX entries of this version of deadheat and of the paper that it implements."""
    return f"{_SOFTWARE.format(version=own_version())}\n\n{PAPER}"


def citation(results: Sequence[Result], *, percent: bool = False) -> list[str | Table]:
    """Return the parts of a citation: sentences, a table, the appendix, BibTeX.

    Parameters
    ----------
    results
        Results with the same settings and judgements.
    percent
        Whether sentences use percent: 63.57 for 0.6357. Default: False.
    """
    named = dict(zip(name_results(results), results, strict=True))
    table = results_table(results)
    columns = {column.sources[0]: column for column in table.columns}
    shown = [columns[name] for name in _SHOWN if name in columns]
    remarks = {label: result.remarks for label, result in named.items()}
    return [
        Heading("In the text"),
        *(_sentence(label, result, percent) for label, result in named.items()),
        Heading("Table"),
        replace(table, columns=shown, title=""),
        Heading("Appendix"),
        _appendix(results),
        *(Prose(f"[Also state: {text}.]") for text in lines(remarks, "warning")),
        Prose("[Also state the model, its dtype and the dtype of scoring of each run.]"),
        Heading("BibTeX"),
        Verbatim(bibtex()),
    ]


def latex_citation(results: Sequence[Result], *, percent: bool = False) -> str:
    r"""Return a citation in LaTeX.

    It uses ``\cite``; headings are comments, and an environment writes the BibTeX entries to
    ``deadheat.bib``.
    """
    text = render(citation(results, percent=percent), "latex", percent=percent)
    entries = bibtex()
    file = f"\\begin{{filecontents}}[overwrite]{{deadheat.bib}}\n{entries}\n\\end{{filecontents}}"
    return text.replace(_cite(), r"\cite{deadheat,yang2026reliable}").replace(entries, file)


def _cite() -> str:
    return f"(deadheat {own_version()}; Yang et al., 2026)"


def _sentence(label: str, result: Result, percent: bool) -> Prose:
    def write(summary: Summary) -> str:
        ends = [number(end, percent=percent) for end in (summary.worst, summary.best)]
        interval = f" [{', '.join(ends)}]" if summary.range else ""
        return f"{summary.measure} {number(summary.expected, percent=percent)}{interval}"

    *values, last = map(write, result.values())
    listed = f"{', '.join(values)} and {last}" if values else last
    reached = f"{label} reaches {listed} on {_queries([result])}"
    if not any(summary.range for summary in result.values()):
        return Prose(f"{reached}; ties move no value.")
    return Prose(
        f"{reached}: the mean over all orders of tied documents, with [worst, best] {_cite()}."
    )


def _appendix(results: Sequence[Result]) -> Prose:
    settings = results[0].provenance.settings
    scores = settings.rounding or "as they are"
    near = f", and those at most {settings.tie_tolerance:g} apart as tied"
    return Prose(
        f"All values are tie-aware {_cite()}. Documents of a query that have the same score are "
        "tied. Where documents tie, we report the exact mean of a measure over all their orders "
        "(expected), the difference between the best and the worst order (range), and the value "
        f"of a tool that breaks ties {settings.in_tie_order} (oblivious) with its "
        f"difference from the mean (bias). Scores are taken {scores}"
        f"{near if settings.tie_tolerance else ''}. We average over {_queries(results)}: "
        f"{QUERY_POLICIES[settings.queries]}."  # type: ignore[index]
    )


def _queries(results: Sequence[Result]) -> str:
    return counted_range([len(result.query_ids) for result in results], "query")
