"""Help texts with grouped options and an example; completion of measures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from deadheat.errors import InputError

F = TypeVar("F", bound=Callable[..., object])
_GROUPS = {
    "What to evaluate": "model models datasets subset split revision file paper qrels_path "
    "measures measure cutoffs queries query nan runs dataset logits tolerance levels samples "
    "max_range",
    "How the model is run": "model_dtypes model_dtype regime regimes scoring_dtypes batch_size "
    "max_length limit candidates depth device trust_remote_code",
    "Published numbers": "published columns name_column group allow_outside",
    "Ties": "tie_break tie_tolerance score_dtype",
    "Comparison": "baseline alpha resamples seed",
    "Where the work is done": "engine ray_address workers gpus_per_worker",
    "Output": "per_query cite all_pairs table ties worst by sort top rows title details "
    "brief percent style wide width output folder force strict report",
}
"""Names of parameters under the headings of a help text; all others go under the last one."""
_OTHER = "Other options"


class Command(click.Command):
    """A command whose help shows options in groups and ends with an example."""

    def __init__(self, *args: Any, example: str = "", **options: Any) -> None:
        super().__init__(*args, **options)
        self.example = example

    def grouped_options(self, ctx: click.Context) -> dict[str, list[tuple[str, str]]]:
        """Return options and their help texts under the headings of their groups."""
        headings = {name: heading for heading, names in _GROUPS.items() for name in names.split()}
        groups: dict[str, list[tuple[str, str]]] = {heading: [] for heading in (*_GROUPS, _OTHER)}
        ctx.show_default = True
        for option in self.get_params(ctx):
            record = option.get_help_record(ctx) if isinstance(option, click.Option) else None
            if record is not None:
                groups[headings.get(option.name or "", _OTHER)].append(record)
        return {heading: records for heading, records in groups.items() if records}

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options under the headings of their groups."""
        for heading, records in self.grouped_options(ctx).items():
            with formatter.section(heading):
                formatter.write_dl(records)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the example."""
        super().format_epilog(ctx, formatter)
        if self.example:
            with formatter.section("Example"):
                for line in self.example.splitlines():
                    formatter.write(f"  {line}\n")


def text_option(flag: str, text: Callable[[], str], help: str) -> Callable[[F], F]:
    """Make an option that prints a text and ends the command."""

    def show(ctx: click.Context, _: click.Parameter, value: bool) -> None:
        if value:
            click.echo(text())
            ctx.exit()

    return click.option(
        flag, is_flag=True, is_eager=True, expose_value=False, callback=show, help=help
    )


def complete_measures(
    ctx: click.Context, parameter: click.Parameter, incomplete: str
) -> Sequence[str]:
    """Complete the name of a measure; suggest cutoffs after a complete name."""
    from deadheat.measures import MEASURES

    before, comma, typed = incomplete.rpartition(",")
    name, at, _ = typed.partition("@")
    if at:
        words = [f"{name}@{k}" for k in (1, 3, 5, 10, 20, 50, 100, 1000)]
    else:
        words = [f"{measure.name}{end}" for measure in MEASURES for end in ("", "@10")]
    return [before + comma + word for word in words if word.lower().startswith(typed.lower())]


def parse_numbers(_: object, option: click.Parameter, text: str | None) -> list[int] | None:
    """Parse the numbers and ranges of an option.

    >>> parse_numbers(None, click.Option(["-k"]), "1..3,10")
    [1, 2, 3, 10]
    """
    if text is None:
        return None
    numbers: set[int] = set()
    for part in text.split(","):
        first, dots, last = part.partition("..")
        try:
            found = range(int(first), int(last if dots else first) + 1)
        except ValueError:
            found = range(0)
        if not found or found[0] < 1 or found[-1] > 10_000:
            raise InputError(
                f"{option.opts[-1]}: cannot parse {text!r}; use numbers and ranges from 1 to "
                "10000, such as 1..10,20"
            )
        numbers.update(found)
    return sorted(numbers)
