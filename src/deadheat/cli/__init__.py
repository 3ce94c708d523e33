"""The command line: one module per command."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import click
from click.shell_completion import CompletionItem

from deadheat.cli.help import text_option
from deadheat.errors import DeadheatError, printable, suggest

COMMANDS = {
    "check": "Check whether ties affect your numbers, why, and what to change.",
    "eval": "Evaluate runs: expected, best and worst value over tie orders.",
    "compare": "Compare runs in pairs, with uncertainty from ties and queries.",
    "leaderboard": "Check whole leaderboards: published numbers, ranks under ties.",
    "diagnose": "Find the causes of a run's ties, and their effect on measures.",
    "run": "Run models in several precisions, and evaluate each.",
    "table": "Print the paper's table from the folder of a run.",
    "verify": "Check that the files of a stored run are unchanged.",
    "plot": "Draw a figure for a paper: PNG, SVG or PDF.",
    "report": "Write one self-contained web page about results.",
    "mteb": "Show how ties affect MTEB scores.",
    "demo": "Show the effect of ties on recorded outputs of three models.",
}
"""Modules of this package, each with one `command`, and the purpose of the command.

Modules are imported when they are used: the list of commands imports none of them.
"""


class _Commands(click.Group):
    """Group that imports a command when it is used, and prints an InputError as one message."""

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
        """Return the command; for an unknown name, suggest the most similar one."""
        if not (ctx.resilient_parsing or args[0].startswith("-") or args[0] in COMMANDS):
            meant = suggest(args[0], COMMANDS)
            raise click.UsageError(f"No such command {args[0]!r}{meant}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        matching = [name for name in COMMANDS if name.startswith(incomplete)]
        items = [CompletionItem(name, help=COMMANDS[name]) for name in matching]
        return items + click.Command.shell_complete(self, ctx, incomplete)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except click.UsageError as error:  # click quotes the words that it cannot parse
            message = error.format_message()
            if message == printable(message, keep="\n"):
                raise
            raise click.UsageError(printable(message), error.ctx) from None
        except DeadheatError as error:
            click.echo(f"error: {error}", err=True)
            ctx.exit(2)
        except KeyboardInterrupt:
            click.echo("interrupted", err=True)
            ctx.exit(130)  # the exit status of shells after Ctrl-C


def _version() -> str:
    from deadheat._internal.packages import own_version
    from deadheat.ties import BACKEND

    return f"deadheat {own_version()} ({BACKEND})"


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@text_option("--version", _version, "Show the version, and whether compiled code or NumPy counts.")
def main() -> None:
    """Evaluate retrieval systems whose scores tie."""
