"""Search everything that a site would publish for keys, internal addresses, home paths, names and erased ids.

Kinds of findings: `environment` (a variable's value), `key` (its form), `address`, `path`, `annotator`, `erased`.
"""

from __future__ import annotations

import math
import os
import re
import tomllib
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from h2htalk.data.erasure.folder_kinds import ERASED, kind_of, read_erased
from h2htalk.data.links import follow_links, read_links
from h2htalk.data.releases.release_folder import TOMBSTONES
from h2htalk.errors import ConfigError, counted
from h2htalk.masking import find_keys, is_secret_name
from h2htalk.rounds.round_folder import RoundFolder
from h2htalk.site.sources import Sources
from h2htalk.text.escaping import printable

SHOWN = 50  # findings in a message
_BETWEEN = "\n\x00\n"  # texts that are searched as one; no form goes across it
_PUBLIC_HOSTS = ("openai.com", "anthropic.com", "huggingface.co")  # of hosted engines and splits
_WORD = re.compile("[A-Za-z0-9]+")
_FORMS = tomllib.loads((files("h2htalk.site") / "leak_forms.toml").read_text("utf-8"))["forms"]


class Finding(NamedTuple):
    """Something that must not be published: where, of which item, in which part of it; `masked` is its text."""

    kind: str
    where: str
    item: str
    part: str
    masked: str

    def __str__(self) -> str:
        return printable(f"{', '.join(filter(None, self[1:4]))}: {self.kind} {self.masked}")


class LeakCheck:
    """What must not be published of some sources, and the `findings` in all texts that were searched so far."""

    def __init__(self, sources: Sources, environ: Mapping[str, str] = os.environ) -> None:
        """Collect what is secret in the environment and the sources."""
        self.findings: dict[Finding, None] = {}
        values = list(_secret_values(environ))
        literals = [("environment", value, False) for value in values]
        home = str(Path.home())
        if len(home) > 1:
            literals.append(("path", home, True))
        # Companions, whom every prompt names, may be namesakes of people.
        companions: set[str] = set()
        for split in sources.splits:
            for persona in split.personas.values():
                for name in persona.names.values():
                    companions |= {name, *name.split()}
        for folder in sources.folders:
            kind = kind_of(folder)
            manifest = folder / (kind.marker if kind else "workspace.json")
            literals.append(("path", str(folder.resolve()), True))
            for file in (ERASED, TOMBSTONES):
                literals += [("erased", name, True) for name in read_erased(folder / file)]
            for host in _private_hosts(manifest.read_text(encoding="utf-8")):
                literals.append(("address", host, True))
            for name in _annotators(folder):
                if name not in companions:
                    literals.append(("annotator", name, name.isascii()))
        # With the first word: the set of a text's words excludes most of them faster than a search.
        self._literals = []
        for kind_name, text, is_word in dict.fromkeys(literals):
            word = _WORD.search(text) if is_word else None
            self._literals.append((kind_name, text, is_word, word[0] if word else ""))
        # Of a secret every spelling: escaped, in base64, in capital letters, in part (`masking`).
        named = [value.strip() for name, value in environ.items() if is_secret_name(name)]
        self._secrets = tuple(value for value in dict.fromkeys(named) if value in values)

    def check(self, where: str, part: str, items: Sequence[str], values: Sequence[Any]) -> None:
        """Search the texts in nested values, one value for each of the items. `where` is a split, a run or a page."""
        names: list[str] = []
        texts: list[str] = []
        starts: list[int] = []
        length = 0
        for item, value in zip(items, values, strict=True):
            for text in _texts(value):
                names.append(item)
                texts.append(text)
                starts.append(length)
                length += len(text) + len(_BETWEEN)
        for kind, start, value in self._search(_BETWEEN.join(texts)):
            masked = f"{value[: 3 if len(value) > 8 else 1]}… ({len(value)} characters)"
            item = names[bisect_right(starts, start) - 1]
            self.findings[Finding(kind, where, item, part, masked)] = None

    def require_none(self) -> None:
        """Raise ConfigError, which lists the findings with their items."""
        lines = [f"  {finding}" for finding in self.findings]
        if lines:
            head = f"{counted(len(lines), 'text')} must not be published; correct the runs, or leave these items out"
            if len(lines) > SHOWN:
                lines[SHOWN:] = [f"  and {len(lines) - SHOWN:,} more"]
            raise ConfigError("\n".join([head, *lines]))

    def _search(self, text: str) -> Iterator[tuple[str, int, str]]:
        """Yield kind, position and value of everything in a text that must not be published."""
        words = set(_WORD.findall(text))
        literals = set()
        for kind, value, is_word, first in self._literals:
            literals.add(value)
            start = -1 if first and first not in words else text.find(value)
            while start >= 0:
                end = start + len(value)
                if not is_word or _stands_alone(text, start, end):
                    yield kind, start, value
                start = text.find(value, end)
        for start, end in find_keys(text, self._secrets):
            if text[start:end] not in literals:  # which was found above
                yield "environment", start, text[start:end]
        for form in _FORMS:
            if any(mark in text for mark in form["marks"]):
                for match in re.finditer("".join(form["pattern"]), text, re.ASCII):
                    yield form["kind"], match.start(), match[0]


def _stands_alone(text: str, start: int, end: int) -> bool:
    """Whether a name, id or path in a text is no part of a longer one."""
    before = text[start - 1 : start]
    if before == text[start] == "/":
        return False
    return not _goes_on(before) and not _goes_on(text[end : end + 1])


def _goes_on(sign: str) -> bool:
    """Whether a name or id goes on with a character; Chinese is written without spaces."""
    return sign in ("_", "-") or (sign.isalnum() and sign < "\u2e80")


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | tuple):
        for element in value:
            yield from _texts(element)


def _secret_values(environ: Mapping[str, str]) -> Iterator[str]:
    """Values of variables that are named like a secret, and long ones that look drawn."""
    for name, value in environ.items():
        value = value.strip()
        plain = (
            value.isalpha() or value.isdigit()
        )  # a word or a number, which may stand anywhere unless it is long
        is_path = value.startswith(("/", "~", "./", "unix:")) or value[1:3] == ":\\"
        if is_secret_name(name):
            if len(value) >= (12 if plain else 6) and not (is_path and os.path.exists(value)):
                yield value
        elif len(value) >= 16 and not (
            plain or is_path or re.search(r"\s|^https?://|^\D+$", value)
        ):
            shares = [n / len(value) for n in Counter(value).values()]
            if -sum(share * math.log2(share) for share in shares) >= 3:  # bits a character
                yield value


def _private_hosts(manifest: str) -> Iterator[str]:
    """Yield the hosts that a manifest names, as that of an endpoint.

    A host without a domain may be a word, and has its port.
    """
    for url in map(urlsplit, re.findall(r"https?://[^\s\"'\\\[\]]+", manifest)):
        host = url.hostname or ""
        if "." not in host:
            yield from re.findall(rf"{re.escape(host)}:\d+", url.netloc) if host else ()
        elif not host.endswith(_PUBLIC_HOSTS):
            yield host


def _annotators(folder: Path) -> Iterator[str]:
    """Yield the names and payment codes of people who annotated in the rounds that a folder links."""
    for link, path in follow_links(read_links(folder)):
        if link.kind == "round":
            for person in RoundFolder(path).listed_annotators():
                for name in (person.name, person.participant_id, person.completion_code):
                    if len(name) > (2 if name.isascii() else 1):
                        yield name
