"""Search everything that a site would publish for keys, internal addresses, home paths, names and erased ids.

Kinds of findings: `environment` (a variable's value), `key` (its form), `address`, `path`, `annotator`, `erased`.
"""

from __future__ import annotations

import math
import os
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from h2htalk.data.erasure.folder_kinds import ERASED, kind_of, read_erased
from h2htalk.data.links import follow_links, read_links
from h2htalk.data.releases.release_folder import TOMBSTONES
from h2htalk.errors import ConfigError, counted
from h2htalk.rounds.round_folder import RoundFolder
from h2htalk.site.sources import Sources
from h2htalk.text.escaping import printable

SHOWN = 50  # findings in a message
_BETWEEN = "\n\x00\n"  # texts that are searched as one; no form goes across it
_SECRET = re.compile(r"KEYS?$|KEY_|TOKEN|SECRET|PASSW|PWD|PASSPHRASE|CREDENTIAL|(?:^|_)(?:PASS|PAT|AUTH)(?:_|$)")
_PUBLIC_HOSTS = ("openai.com", "anthropic.com", "huggingface.co")  # of hosted engines and splits
_WORD = re.compile("[A-Za-z0-9]+")
_KEY_MARKS = (
    "sk- pk- sess- hf_ ghp_ gho_ ghu_ ghs_ ghr_ github_pat_ gsk_ npm_ r8_ _live_ _test_ glpat- nvapi- pypi- xai- xox "
    "AKIA ASIA AIza eyJ SG. ya29."
)
_KEYS = (
    r"(?<![A-Za-z\d])(?:(?:sk|pk|sess)-(?=[\w-]*\d)[\w-]{16,}|AIza[\w-]{30,}|A[KS]IA[0-9A-Z]{16}"
    r"|(?:hf|gh[pousr]|gsk|npm|r8|[rs]k_(?:live|test))_[A-Za-z\d]{16,}|eyJ[\w-]{8,}\.eyJ[\w-]{8,}"
    r"|(?:github_pat_|glpat-|nvapi-|pypi-|xai-(?=[\w-]*\d)|ya29\.|SG\.|xox[abprs]-)[\w-]{12,})"
)
_PRIVATE = r"(?<![\d.])(?:(?:10|127)\.\d{1,3}|192\.168|169\.254|172\.(?:1[6-9]|2\d|3[01]))(?:\.\d{1,3}){2}(?!\.?\d)"
_LOCAL = r"(?<![\w.])(?:localhost|0\.0\.0\.0):\d{2,5}|\[::1\]|(?<![\w:])(?:fe80|fd[0-9a-f]{2}):(?::?[0-9a-f]{1,4}){2,7}"
_NAMED = r"(?<![\w.-])(?:[A-Za-z0-9-]+\.)+(?:internal|local|lan|intranet|corp)(?![\w-]|\.\w)"
_HOME = r"(?<![\w./])(?:file://)?/(?:home|Users|root|data/users)/[\w.-]+|[A-Za-z]:\\+Users\\+[\w.-]+"
# By kind: texts of which each match holds one, which are searched first because that is fast, and the form.
_FORMS = [
    ("key", _KEY_MARKS, _KEYS),
    ("key", "earer", r"(?<![A-Za-z])[Bb]earer\s+(?=[\w.~+/=-]*\d)[\w.~+/=-]{12,}"),
    ("key", "asic", r"(?<![A-Za-z])[Bb]asic\s+(?=[\w+/]*\d)[\w+/]{16,}"),
    ("key", "PRIVATE", r"-----BEGIN [A-Z ]*PRIVATE KEY"),
    ("key", "://", r"[a-z][a-z0-9+.-]{1,12}://[^\s/:@]+:[^\s/@]+@[\w.-]+"),
    ("address", "10. 192.168. 172. 169.254. 127.", _PRIVATE),
    ("address", "localhost: 0.0.0.0: [::1] fe80: fd", _LOCAL),
    ("address", "://localhost", r"://localhost\b"),
    ("address", ".internal .local .lan .intranet .corp", _NAMED),
    ("path", "/home/ /Users/ /users/ /root/ \\Users\\", _HOME),
]


class Finding(NamedTuple):
    """Something that must not be published: where, of which item, in which part of it; `shown` is masked."""

    kind: str
    where: str
    item: str
    place: str
    shown: str

    def __str__(self) -> str:
        return printable(f"{', '.join(filter(None, self[1:4]))}: {self.kind} {self.shown}")


class LeakCheck:
    """What must not be published of some sources, and the `findings` in all texts that were searched so far."""

    def __init__(self, sources: Sources, environ: Mapping[str, str] = os.environ) -> None:
        """Collect what is secret in the environment and the sources."""
        self.findings = dict[Finding, None]()
        # Companions, whom every prompt names, may be namesakes of people.
        named = [name for split in sources.splits for one in split.personas.values() for name in one.names.values()]
        companions = {word for name in named for word in (name, *name.split())}
        found = [("environment", value, False) for value in _secret_values(environ)]
        found += [("path", home, True) for home in [str(Path.home())] if len(home) > 1]
        for folder in sources.folders:
            marker = kind.marker if (kind := kind_of(folder)) else "workspace.json"
            found += [("path", str(folder.resolve()), True)]
            found += [("erased", name, True) for file in (ERASED, TOMBSTONES) for name in read_erased(folder / file)]
            found += [("address", host, True) for host in _private_hosts((folder / marker).read_text(encoding="utf-8"))]
            found += [("annotator", one, one.isascii()) for one in _annotators(folder) if one not in companions]
        # With the first word: the set of a text's words excludes most of them faster than a search.
        first = {text: word[0] if (word := _WORD.search(text)) else "" for _, text, _ in found}
        self._literals = [(*one, first[one[1]] if one[2] else "") for one in dict.fromkeys(found)]

    def check(self, where: str, place: str, items: Sequence[str], values: Sequence[Any]) -> None:
        """Search the texts in nested values, one value for each of the items. `where` is a split, a run or a page."""
        texts = [(item, text) for item, value in zip(items, values, strict=True) for text in _texts(value)]
        starts = [*accumulate((len(text) + len(_BETWEEN) for _, text in texts), initial=0)]
        for kind, start, value in self._search(_BETWEEN.join(text for _, text in texts)):
            masked = f"{value[: 3 if len(value) > 8 else 1]}… ({len(value)} characters)"
            self.findings[Finding(kind, where, texts[bisect_right(starts, start) - 1][0], place, masked)] = None

    def require_none(self) -> None:
        """Raise ConfigError, which lists the findings with their items."""
        if lines := [f"  {one}" for one in self.findings]:
            head = f"{counted(len(lines), 'text')} must not be published; correct the runs, or leave these items out"
            more = [f"  and {len(lines) - SHOWN:,} more"] if len(lines) > SHOWN else []
            raise ConfigError("\n".join([head, *lines[:SHOWN], *more]))

    def _search(self, text: str) -> Iterator[tuple[str, int, str]]:
        """Yield kind, position and value of everything in a text that must not be published."""
        words = set(_WORD.findall(text))
        for kind, value, whole, first in self._literals:
            at = -1 if first and first not in words else text.find(value)
            while at >= 0:
                before, end = text[at - 1 : at], at + len(value)
                if not whole or not (_goes_on(before) or _goes_on(text[end : end + 1]) or before == value[0] == "/"):
                    yield kind, at, value
                at = text.find(value, end)
        for kind, marks, form in _FORMS:
            if any(mark in text for mark in marks.split()):
                yield from ((kind, found.start(), found[0]) for found in re.finditer(form, text, re.ASCII))


def _goes_on(sign: str) -> bool:
    """Whether a name or id goes on with a character; Chinese is written without spaces."""
    return sign in ("_", "-") or (sign.isalnum() and sign < "\u2e80")


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for one in value if isinstance(value, list | tuple) else ():
        yield from _texts(one)


def _secret_values(environ: Mapping[str, str]) -> Iterator[str]:
    """Values of variables that are named like a secret, and long ones that look drawn."""
    for name, value in ((name, value.strip()) for name, value in environ.items()):
        plain = value.isalpha() or value.isdigit()  # a word or a number, which may stand anywhere unless it is long
        is_path = value.startswith(("/", "~", "./", "unix:")) or value[1:3] == ":\\"
        if _SECRET.search(name.upper()):
            if len(value) >= (12 if plain else 6) and not (is_path and os.path.exists(value)):
                yield value
        elif len(value) >= 16 and not (plain or is_path or re.search(r"\s|^https?://|^\D+$", value)):
            shares = [n / len(value) for n in Counter(value).values()]
            if -sum(share * math.log2(share) for share in shares) >= 3:  # bits a character
                yield value


def _private_hosts(manifest: str) -> Iterator[str]:
    """The hosts that a manifest names, as that of an endpoint; one without a domain may be a word, and has its port."""
    for url in map(urlsplit, re.findall(r"https?://[^\s\"'\\\[\]]+", manifest)):
        if (host := url.hostname or "") and not host.endswith(_PUBLIC_HOSTS):
            yield from [host] if "." in host else re.findall(rf"{re.escape(host)}:\d+", url.netloc)


def _annotators(folder: Path) -> Iterator[str]:
    """The names and payment codes of people who annotated in the rounds that a folder links."""
    for path in (path for link, path in follow_links(read_links(folder)) if link.kind == "round"):
        for one in RoundFolder(path).listed_annotators():
            names = (one.name, one.participant_id, one.completion_code)
            yield from (name for name in names if len(name) > (2 if name.isascii() else 1))
