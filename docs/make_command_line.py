"""Print docs/command-line.md: `python docs/make_command_line.py`."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator

import click

from deadheat.cli import main
from deadheat.cli.help import Command

INTRODUCTION = """\
# Command line

Every command and option, as `deadheat COMMAND --help` prints them. First, what the commands share.

## What commands share

**Input.** Judgements come first, then runs (`report`: `--qrels`). A run has the name of its file
without endings; `NAME=RUN` gives it another name. Several measures or cutoffs may be one word: `-m
nDCG@5,10,MRR@10`. `-` reads standard input.

```console
$ deadheat eval demo/softmax-qrels.txt BF16=demo/softmax-native.run -m nDCG@5,10,MRR@10 --percent
```

**Width.** A table fits the terminal: in a narrow one, columns of less importance are hidden, and
the last line says which. `--wide` shows all columns. `--percent` and `--fraction` choose between
63.57 and 0.6357. Grey digits (`x` without colour) are smaller than the tie std.

**Files.** `-o FILE` writes a file atomically; its ending chooses the format: `.txt`, `.md`, `.tex`,
`.csv`, `.json` or `.html`. CSV and JSON have full precision. LaTeX needs the package booktabs.

**Exit status.** 0: done. 1: done, but a check failed (`--max-range`), or there was a warning and
`--strict` was given. 2: bad usage or input; nothing was written. 130: ended with Ctrl-C.

**Completion.** One line in the shell's start-up file completes commands, options, measures and tie
rules:

```bash
eval "$(_DEADHEAT_COMPLETE=bash_source deadheat)"            # bash: ~/.bashrc
eval "$(_DEADHEAT_COMPLETE=zsh_source deadheat)"             # zsh: ~/.zshrc
_DEADHEAT_COMPLETE=fish_source deadheat | source             # fish: ~/.config/fish/config.fish
```"""

_HELP = "Show this message and exit."


def as_markdown() -> str:
    """Return the page."""
    return "\n\n".join([INTRODUCTION, *_commands("deadheat", main)]) + "\n"


def _commands(path: str, group: click.Group) -> Iterator[str]:
    """Yield the sections of all commands of a group and of its subgroups."""
    ctx = click.Context(group, info_name=path, terminal_width=90)
    for name in group.list_commands(ctx):
        command = group.get_command(ctx, name)
        if isinstance(command, click.Group):
            yield _heading(f"{path} {name}", command)
            yield from _commands(f"{path} {name}", command)
        elif command is not None:
            yield _describe(f"{path} {name}", command)


def _heading(path: str, command: click.Command) -> str:
    paragraphs = inspect.cleandoc(command.help or "").split("\n\n")
    return "\n\n".join([f"## {path}", *map(_plain, paragraphs)])


def _describe(path: str, command: click.Command) -> str:
    ctx = click.Context(command, info_name=path, terminal_width=90)
    parts = [_heading(path, command), f"```text\n{command.get_usage(ctx)}\n```"]
    if isinstance(command, Command):
        if command.example:
            parts.append(f"For example:\n\n```text\n{command.example}\n```")
        for heading, records in command.grouped_options(ctx).items():
            items = [f"- `{option}`: {_plain(text)}" for option, text in records if text != _HELP]
            parts += ["\n".join([f"**{heading}**", "", *items])] if items else []
    return "\n\n".join(parts)


def _plain(text: str) -> str:
    """Return the text in one line, with special characters of Markdown escaped."""
    text = " ".join(text.split())
    for sign in "*<>[]":
        text = text.replace(sign, f"\\{sign}")
    return text


if __name__ == "__main__":
    sys.stdout.buffer.write(as_markdown().encode())
