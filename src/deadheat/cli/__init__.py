"""The command line: words into calls."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import click

from deadheat.errors import DeadheatError, printable
from deadheat.packages import own_version
from deadheat.ties import BACKEND

# Modules of this package, each with one `command`; loaded when they are asked for.
COMMANDS = (
    "eval",
    "compare",
    "leaderboard",
    "diagnose",
    "run",
    "table",
    "verify",
    "plot",
    "report",
    "mteb",
    "demo",
)


class _Commands(click.Group):
    """Loads a command when it is used, and shows a user's mistake as one message."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        command: click.Command = import_module(f"deadheat.cli.{name}").command
        return command

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except click.UsageError as error:  # click repeats the words that it cannot use
            said = error.format_message()
            if said == printable(said, keep="\n"):
                raise
            raise click.UsageError(printable(said), error.ctx) from None
        except DeadheatError as error:
            click.echo(f"error: {error}", err=True)
            ctx.exit(2)


def _version(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        click.echo(f"deadheat {own_version()} (counting pass: {BACKEND})")
        ctx.exit()


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_version,
    help="Show the version and which counting pass is active.",
)
def main() -> None:
    """Evaluate retrieval systems whose scores tie."""
