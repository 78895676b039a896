"""Search everything that a site would publish for keys, internal addresses, home paths, names and erased ids.

Kinds of findings: `environment` (a value of a variable), `key` (the form of one), `address`, `path`, `annotator`,
`erased`. Texts are joined and searched once; a finding is then traced back to its item.
"""

from __future__ import annotations

import html
import math
import os
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from h2htalk.data.erasure.folder_kinds import ERASED, read_erased
from h2htalk.data.links import follow_links, read_links
from h2htalk.data.run_folder import RunFolder
from h2htalk.errors import ConfigError, counted
from h2htalk.rounds.round_folder import RoundFolder
from h2htalk.site.sources import Sources
from h2htalk.text.escaping import printable

SHOWN = 50  # findings in a message
_LONG, _BITS = 16, 3.0  # of a value that is random: characters, and bits of entropy a character
_SECRET = re.compile(r"KEY(?:S?$|_)|TOKEN|SECRET|PASSW|PASSPHRASE|(?:^|_)(?:PASS|PWD|PAT|AUTH)(?:_|$)|CREDENTIAL")
_NOT_SECRET = {"PWD", "OLDPWD"}
_PUBLIC_HOSTS = ("openai.com", "anthropic.com")  # of hosted engines, whose address is no secret
_WORD = re.compile(r"[A-Za-z0-9]+")
_BETWEEN = "\n\x00\n"  # texts; no form goes across it

# By kind: texts of which one is in every match, searched first because that is fast, and the form.
_FORMS = [
    ("key", "sk- pk- sess-", r"(?<![A-Za-z0-9])(?:sk|pk|sess)-(?=[\w-]*\d)[\w-]{16,}"),
    ("key", "hf_ ghp_ gho_ ghu_ ghs_ ghr_ gsk_ npm_", r"(?<![A-Za-z0-9])(?:hf|gh[pousr]|gsk|npm)_[A-Za-z0-9]{16,}"),
    ("key", "github_pat_ glpat- nvapi- pypi-", r"(?<![A-Za-z0-9])(?:github_pat_|glpat-|nvapi-|pypi-)[\w-]{16,}"),
    ("key", "AKIA ASIA AIza", r"(?<![A-Za-z0-9])(?:A[KS]IA[0-9A-Z]{16}|AIza[\w-]{30,})"),
    ("key", "xoxa- xoxb- xoxp- xoxr- xoxs-", r"(?<![A-Za-z0-9])xox[abprs]-[\w-]{10,}"),
    ("key", "earer", r"(?<![A-Za-z])[Bb]earer\s+(?=[\w.~+/=-]*\d)[\w.~+/=-]{12,}"),
    ("key", "-----BEGIN", r"-----BEGIN [A-Z ]*PRIVATE KEY"),
    ("key", "eyJ", r"(?<![A-Za-z0-9])eyJ[\w-]{8,}\.eyJ[\w-]{8,}(?:\.[\w-]*)?"),
    ("key", "://", r"[a-z][a-z0-9+.-]{1,12}://[^\s/:@]+:[^\s/@]+@[\w.-]+"),
    (
        *("address", "10. 192.168. 172. 169.254. 127."),
        r"(?<![\d.])(?:(?:10|127)\.\d{1,3}|192\.168|169\.254|172\.(?:1[6-9]|2\d|3[01]))(?:\.\d{1,3}){2}(?!\.?\d)",
    ),
    ("address", "localhost: 0.0.0.0:", r"(?<![\w.])(?:localhost|0\.0\.0\.0):\d{2,5}(?!\d)"),
    ("address", "[::1] fe80: fd", r"\[::1\]|(?<![\w:])(?:fe80|fd[0-9a-f]{2}):(?::?[0-9a-f]{1,4}){2,7}"),
    (
        *("address", ".internal .local .lan .intranet .corp"),
        r"(?<![\w.-])(?:[A-Za-z0-9-]+\.)+(?:internal|local|lan|intranet|corp)(?![\w-]|\.\w)",
    ),
    ("path", "/home/ /Users/ /root/", r"(?<![\w.])/(?:(?:home|Users)/[\w.-]+|root/[\w.-]+)"),
    ("path", "\\Users\\", r"[A-Za-z]:\\+Users\\+[\w.-]+"),
]
_SEARCHED = [(kind, marks.split(), re.compile(form, re.ASCII)) for kind, marks, form in _FORMS]


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that must not be published: where, of which item, in which part of it; `shown` is masked."""

    kind: str
    where: str
    item: str
    place: str
    shown: str

    def __str__(self) -> str:
        parts = (self.where, self.item, self.place)
        return f"{printable(', '.join(filter(None, parts)))}: {self.kind} {printable(self.shown)}"


class LeakCheck:
    """What must not be published of some sources, and the findings in the texts that were checked so far."""

    def __init__(self, sources: Sources, environ: Mapping[str, str] | None = None, allowed: Iterable[str] = ()) -> None:
        """Collect what is secret in the environment and the sources; findings of `allowed` kinds are not reported."""
        self.findings: dict[Finding, None] = {}
        self._allowed = frozenset(allowed)
        found = [("environment", value, False) for value in _secret_values(os.environ if environ is None else environ)]
        found += [("path", str(Path.home()), True)] * (len(str(Path.home())) > 1)
        named: set[str] = set()  # of companions, whom every prompt names
        folders: list[RunFolder] = [one.run.data.folder for one in sources.runs]
        for split in [one.run.data.split for one in sources.runs] + [one.result.study.split for one in sources.studies]:
            named |= {name for persona in split.personas.values() for name in persona.names.values()}
        for folder in [*folders, *(one.result.study.folder for one in sources.studies)]:
            found += [("path", str(folder.path.resolve()), True)]
            found += [("erased", name, True) for name in read_erased(folder.path / ERASED)]
            found += [("address", host, True) for host in _private_hosts(folder.manifest.read_text(encoding="utf-8"))]
            found += [("annotator", name, name.isascii()) for name in _annotators(folder.path) if name not in named]
        # By the first word, which a set of the words of a text excludes faster than a search does.
        self._literals = [
            (kind, text, whole, word[0] if whole and (word := _WORD.search(text)) else "")
            for kind, text, whole in dict.fromkeys(found)
        ]

    def check(self, where: str, texts: Iterable[tuple[str, str, str]]) -> None:
        """Search texts, each as item, place and text. `where` is the page, or the run."""
        named = [(item, place, text) for item, place, text in texts if text]
        starts, at = [], 0
        for *_, text in named:
            starts.append(at)
            at += len(text) + len(_BETWEEN)
        joined = _BETWEEN.join(text for *_, text in named)
        for kind, start, value in self._search(joined):
            item, place, _ = named[bisect_right(starts, start) - 1]
            cut = value[: 3 if len(value) > 8 else 1]
            if kind not in self._allowed:
                self.findings[Finding(kind, where, item, place, f"{cut}… ({len(value)} characters)")] = None

    def check_page(self, where: str, page: str) -> None:
        """Search a page of HTML."""
        self.check(where, [("", "", html.unescape(page))])

    def require_none(self) -> None:
        """Raise ConfigError, which lists all findings with their items."""
        if not self.findings:
            return
        lines = [f"  {finding}" for finding in self.findings]
        more = [f"  and {len(lines) - SHOWN:,} more"] if len(lines) > SHOWN else []
        head = (
            f"{counted(len(lines), 'text')} of the site must not be published; correct them in their runs, "
            "or leave these items out"
        )
        raise ConfigError("\n".join([head, *lines[:SHOWN], *more]))

    def _search(self, text: str) -> Iterator[tuple[str, int, str]]:
        """Yield kind, position and value of everything in a text that must not be published."""
        words = set(_WORD.findall(text))
        for kind, value, whole, word in self._literals:
            if word and word not in words:
                continue
            at = text.find(value)
            while at >= 0:
                if not whole or not (_in_word(text[at - 1 : at]) or _in_word(text[at + len(value) :][:1])):
                    yield kind, at, value
                at = text.find(value, at + len(value))
        for kind, marks, form in _SEARCHED:
            if any(mark in text for mark in marks):
                yield from ((kind, found.start(), found[0]) for found in form.finditer(text))


def _in_word(sign: str) -> bool:
    """Whether a character goes on with a name or id; Chinese is written without spaces."""
    return sign in ("_", "-") or (sign.isalnum() and sign < "\u2e80")


def _secret_values(environ: Mapping[str, str]) -> Iterator[str]:
    """Values of variables that are named like a secret, and long ones that look random."""
    for name, value in environ.items():
        value, digits = value.strip(), any(map(str.isdigit, value))
        is_path = value.startswith(("/", "~", "./", "unix:")) or value[1:3] == ":\\"
        if _SECRET.search(name.upper()) and name not in _NOT_SECRET:
            # A short password may be a word, or a number, that occurs anywhere.
            if len(value) >= (12 if value.isalpha() or value.isdigit() else 6) and not (
                is_path and os.path.exists(value)
            ):
                yield value
        elif len(value) >= _LONG and digits and not is_path and not re.search(r"\s|^https?://", value):
            counts = Counter(value).values()
            if -sum(n / len(value) * math.log2(n / len(value)) for n in counts) >= _BITS and not value.isdigit():
                yield value


def _private_hosts(manifest: str) -> Iterator[str]:
    """The hosts that a run's manifest names; one without a domain only with its port, as it may be a word."""
    for url in re.findall(r"https?://[^\s\"'\\\\]+", manifest):
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.netloc.rpartition(":")[2]
        if "." in host and not host.endswith(_PUBLIC_HOSTS):
            yield host
        elif host and "." not in host and port.isdigit():
            yield f"{host}:{port}"


def _annotators(folder: Path) -> Iterator[str]:
    """The names and ids of people who annotated in rounds that a folder links."""
    for link, path in follow_links(read_links(folder)):
        if link.kind == "round":
            for one in RoundFolder(path).listed_annotators():
                ids = (one.participant_id, one.completion_code)
                yield from (name for name in (one.name, *ids) if len(name) > (2 if name.isascii() else 1))
