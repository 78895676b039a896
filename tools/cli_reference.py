"""Write docs/reference/cli.md from the commands themselves: python tools/cli_reference.py > docs/reference/cli.md"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import h2htalk.cli

INTRODUCTION = f"""# Command line

This page lists every command and option. {(h2htalk.cli.__doc__ or "").partition(". ")[2].partition(chr(10))[0]}"""


def describe(command: Any, words: tuple[str, ...]) -> Iterator[str]:
    """Yield the lines of a command or a group: text, usage, commands, arguments, options."""
    children = getattr(command, "commands", {})
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    options = [one for one in command.params if one.param_type_name == "option" and not children]
    usage = " ".join(
        ["h2htalk", *words, *(f"[{one.name.upper()}]" for one in arguments), "[OPTIONS]"]
    )
    if words:
        yield f"\n{'#' * (len(words) + 1)} h2htalk {' '.join(words)}\n\n{(command.help or '').strip()}"
        yield from [] if children else [f"\n```\n{usage}\n```"]
    yield from table(
        "command",
        [(" ".join(["h2htalk", *words, name]), one.help) for name, one in children.items()],
    )
    yield from table("argument", [(one.name.upper(), one.help) for one in arguments])
    yield from table(
        "option", [("` `".join([*one.opts, *one.secondary_opts]), one.help) for one in options]
    )
    for name, child in children.items():
        yield from describe(child, (*words, name))


def table(title: str, rows: list[tuple[str, str]]) -> Iterator[str]:
    yield from [f"\n| {title} | meaning |\n| --- | --- |"] if rows else []
    for name, text in rows:
        yield f"| `{name}` | {(text or '').partition(chr(10))[0].replace('|', chr(92) + '|')} |"


if __name__ == "__main__":
    print("\n".join([INTRODUCTION, *describe(h2htalk.cli.all_commands(), ())]))
