"""The command line: one module per command."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import click
from click.shell_completion import CompletionItem

from deadheat.cli.help import text_option
from deadheat.errors import DeadheatError, printable, suggest

COMMANDS = {
    "check": "Say whether ties decide your numbers, why, and what to change.",
    "eval": "Evaluate runs, with every view of their ties.",
    "compare": "Compare runs in pairs: who is better whatever the tie-break?",
    "leaderboard": "Check whole leaderboards: published numbers, ranks under ties.",
    "diagnose": "Say where the ties of a run come from, and what they do.",
    "run": "Run models in several precisions, and evaluate each.",
    "table": "Print the paper's table from the folder of a run.",
    "verify": "Check that a stored run is what was written.",
    "plot": "Draw a figure for a paper: PNG, SVG or PDF.",
    "report": "Write one self-contained web page about results.",
    "mteb": "Show how ties affect MTEB scores.",
    "demo": "Show what ties do to recorded outputs of three real models.",
}
"""Modules of this package, each with one `command`, and what the command is for.

They are loaded when they are used: a list of the commands needs none of them.
"""


class _Commands(click.Group):
    """Loads a command when it is used, and shows a user's mistake as one message."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        command: click.Command = import_module(f"deadheat.cli.{name}").command
        command.short_help = COMMANDS[name]
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or name the one that was probably meant."""
        if not (ctx.resilient_parsing or args[0].startswith("-") or args[0] in COMMANDS):
            meant = suggest(args[0], COMMANDS)
            raise click.UsageError(f"No such command {args[0]!r}{meant}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        begun = [name for name in COMMANDS if name.startswith(incomplete)]
        offered = [CompletionItem(name, help=COMMANDS[name]) for name in begun]
        return offered + click.Command.shell_complete(self, ctx, incomplete)

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
        except KeyboardInterrupt:
            click.echo("interrupted", err=True)
            ctx.exit(130)  # as shells report a program that Ctrl-C ended


def _version() -> str:
    from deadheat._internal.packages import own_version
    from deadheat.ties import BACKEND

    return f"deadheat {own_version()} (counting pass: {BACKEND})"


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@text_option("--version", _version, "Show the version and which counting pass is active.")
def main() -> None:
    """Evaluate retrieval systems whose scores tie."""
