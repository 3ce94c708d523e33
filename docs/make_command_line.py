"""Print the page of all commands and options: `python docs/make_command_line.py`."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator

import click

from deadheat.cli import main
from deadheat.cli.help import Command

INTRODUCTION = """\
# Commands and options

What `deadheat COMMAND --help` says, of every command. [On the command line](guides/terminal.md)
tells what commands share: names of runs, width, output files, exit status."""

_HELP = "Show this message and exit."


def as_markdown() -> str:
    """Give the page."""
    return "\n\n".join([INTRODUCTION, *_commands("deadheat", main)]) + "\n"


def _commands(path: str, group: click.Group) -> Iterator[str]:
    """Describe the commands of a group, and those of the groups among them."""
    ctx = click.Context(group, info_name=path, terminal_width=90)
    for name in group.list_commands(ctx):
        command = group.get_command(ctx, name)
        if isinstance(command, click.Group):
            yield _heading(f"{path} {name}", command)
            yield from _commands(f"{path} {name}", command)
        elif command is not None:
            yield _described(f"{path} {name}", command)


def _heading(path: str, command: click.Command) -> str:
    paragraphs = inspect.cleandoc(command.help or "").split("\n\n")
    return "\n\n".join([f"## {path}", *map(_plain, paragraphs)])


def _described(path: str, command: click.Command) -> str:
    ctx = click.Context(command, info_name=path, terminal_width=90)
    parts = [_heading(path, command), f"```text\n{command.get_usage(ctx)}\n```"]
    if isinstance(command, Command):
        if command.example:
            parts.append(f"For example:\n\n```text\n{command.example}\n```")
        for heading, records in command.grouped_options(ctx).items():
            items = [f"- `{option}`: {_plain(said)}" for option, said in records if said != _HELP]
            parts += ["\n".join([f"**{heading}**", "", *items])] if items else []
    return "\n\n".join(parts)


def _plain(text: str) -> str:
    """Give a line in which no star, bracket or sign of comparison is read as Markdown."""
    text = " ".join(text.split())
    for sign in "*<>[]":
        text = text.replace(sign, f"\\{sign}")
    return text


if __name__ == "__main__":
    sys.stdout.buffer.write(as_markdown().encode())
