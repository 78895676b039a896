"""Mask keys in every text that leaves the process: messages, logs, progress, tracebacks.

A key is *held* from the moment somebody reads it (`hold_key`, `hold_environment`). `mask_held` is the one function that
takes held keys out of a text: every error (`errors.H2HTalkError`) goes through it, every text that is cut
(`errors.shorten`), and while a command runs all that is written to standard output and error (`masked_output`).

A server repeats a key as it likes: in capital letters, broken over lines, escaped for JSON, a URL or HTML, in base64 or
hexadecimal, cut. All these are found, because text and key are compared in one plain form.
"""

from __future__ import annotations

import base64
import html
import os
import re
import sys
import traceback
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from types import TracebackType
from typing import Any, NamedTuple, TextIO
from urllib.parse import unquote, urlsplit

KEY_MASK = "[API key masked]"  # in a text that held the key when it came
SHORTEST_KEY = 6  # shorter ones are no secret and may be words
LONGEST_WORD = 12  # a word or a number of fewer characters may stand in a message by chance
SHORTEST_PART = 12  # characters of a key in a row that are masked also without the others
_GRAM, _STRIDE = 8, 5  # each part of 12 characters holds a gram of 8 that begins at a multiple of 5
_MOST_REPEATS = 3
_SECRET_NAME = re.compile(
    r"KEYS?$|KEY_|TOKEN|SECRET|PASSW|PWD|PASSPHRASE|CREDENTIAL|AUTHORIZATION|COOKIE|(?:^|_)(?:PASS|PAT|AUTH)(?:_|$)"
)
_FOLDERS = ("PWD", "OLDPWD")  # of the shell
# Colours of a terminal stand between characters and for none.
_ESCAPED = re.compile(
    r"\\+(?-i:U)([0-9a-f]{8})|(?:\\+|%(?:25)*)u([0-9a-f]{4})|\\+u\{([0-9a-f]{1,6})\}|\\+x([0-9a-f]{2})"
    r"|%(?:25)*([0-9a-f]{2})|&\#x([0-9a-f]{1,8});?|&\#([0-9]{1,10});?"
    r"|(&[a-z]{2,24};)|(\x1b\[[0-?]*[ -/]*[@-~])|\\+0?([0-3]?[0-7]{2})",
    re.IGNORECASE,
)
_LINE_ESCAPE = re.compile(r"\\+[nrt]")
# What stands between pieces of a key that is quoted line by line, or listed character by character.
_JOINT = re.compile(r"[\"'`>|,:*\[\]]+")
# Characters that take no room, controls and accents among them.
_INVISIBLE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u0300-\u036f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U000e0000-\U000e0fff]"
)
_WIDE = {code + 0xFEE0: code for code in range(0x21, 0x7F)}  # full-width characters of ASCII
_held: dict[str, None] = {}  # in the order in which they were read


def hold_key(*values: str | None) -> None:
    """Mask these keys from now on in all messages of this process; of `Bearer KEY` also the word after the space.

    Not held: what is too short, or a short word or number, which messages hold by chance (`ollama`).
    """
    for value in values:
        for word in {(value or "").strip(), *(value or "").split()}:
            if _is_key(word):
                _held[word] = None


def hold_environment(environ: Mapping[str, str] = os.environ) -> None:
    """Hold the values of all variables that are named like a secret, and the passwords in addresses."""
    for name, value in environ.items():
        is_secret = _SECRET_NAME.search(name.upper()) is not None and name.upper() not in _FOLDERS
        if is_secret and not os.path.exists(value):
            hold_key(value)
        hold_url(value)


def hold_url(url: str) -> None:
    """Hold user and password of an address."""
    if "://" not in url or "@" not in url:
        return
    try:
        parts = urlsplit(url.strip())
        password = parts.password or ""
    except ValueError:
        return
    hold_key(password, unquote(password))


def is_secret_name(name: str) -> bool:
    """Whether a variable, header or field is named like one that holds a secret."""
    return _SECRET_NAME.search(name.upper().replace("-", "_")) is not None


def mask_held(text: str) -> str:
    """Replace every held key in a text, whichever form it has there."""
    return _mask(text, tuple(_held), KEY_MASK) if _held else text


def masked(text: str, key: str | None, mask: str = KEY_MASK) -> str:
    """Replace a key in a text of others, before it is cut."""
    return text if key is None or len(key) < SHORTEST_KEY else _mask(text, (key,), mask)


@contextmanager
def masked_output() -> Iterator[None]:
    """Mask keys in everything that is written to standard output and standard error, tracebacks included."""
    streams = sys.stdout, sys.stderr
    hold_environment()
    sys.stdout, sys.stderr = MaskingStream.around(sys.stdout), MaskingStream.around(sys.stderr)
    sys.excepthook = _write_traceback  # stays: it is called when this has ended
    try:
        yield
    finally:
        sys.stdout, sys.stderr = streams


def _write_traceback(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """Write a traceback as a whole, so that no key lies across two writes."""
    text = "".join(traceback.format_exception(kind, error, trace))
    sys.stderr.write(mask_held(text))


class MaskingStream:
    """A text stream that masks held keys in what is written to it."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    @classmethod
    def around(cls, stream: Any) -> Any:
        """The stream, masked; None where the process has none (`pythonw`)."""
        return None if stream is None else cls(stream)

    def write(self, text: str) -> int:
        self._stream.write(mask_held(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._stream)


# --- Finding a key in a text ------------------------------------------------------------------------------------------


class _Search(NamedTuple):
    """What is looked for in a text in plain form.

    Of a form with more than 12 characters each part of 8 is known, with its places. Every part of 12 characters in a
    text holds one of 8 that begins at a multiple of 5: so one look in five characters finds it, whatever the number of
    keys.
    """

    parts: Mapping[
        str, Sequence[tuple[str, int]]
    ]  # 8 characters -> forms, and where they stand in them
    whole: Sequence[str]  # shorter forms


def _is_key(word: str) -> bool:
    if len(word) < SHORTEST_KEY or word == KEY_MASK:
        return False
    return len(word) >= LONGEST_WORD or not (word.replace("-", "").isalpha() or word.isdigit())


def _forms(key: str) -> list[str]:
    """The forms of a key: as it is, its UTF-8 bytes as a URL escapes them, hexadecimal, base64 at each of the three
    offsets that it can have in a longer text."""
    content = key.encode("utf-8", "surrogatepass")
    texts = [key, content.decode("latin-1"), content.hex()]
    for shift in range(3):
        start, end = (
            -(-shift * 8 // 6),
            (shift + len(content)) * 8 // 6,
        )  # characters that the key alone decides
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            texts.append(encode(bytes(shift) + content).decode()[start:end])
    plain_forms = dict.fromkeys(_plain(text) for text in texts)
    return [form for form in plain_forms if len(form) >= SHORTEST_KEY]


@lru_cache(maxsize=64)
def _search_for(keys: tuple[str, ...]) -> _Search:
    parts, whole = dict[str, list[tuple[str, int]]](), list[str]()
    for key in keys:
        for form in _forms(key):
            if len(form) < SHORTEST_PART:
                whole.append(form)
                continue
            repeats = Counter[str]()
            for place in range(len(form) - _GRAM + 1):
                part = form[place : place + _GRAM]
                repeats[part] += 1
                if (
                    repeats[part] <= _MOST_REPEATS
                ):  # a key of one character would be looked for at all its places
                    parts.setdefault(part, []).append((form, place))
    return _Search(parts=parts, whole=whole)


def find_keys(text: str, keys: tuple[str, ...]) -> list[tuple[int, int]]:
    """Where keys, in whichever form, and long parts of them stand in a text: first character, and the one after the
    last; in their order, and none in another."""
    if not keys:
        return []
    search = _search_for(keys)
    spans = list[tuple[int, int]]()
    # `\\n` may be the end of a line in JSON, or an escaped letter of the key.
    unbroken = _LINE_ESCAPE.sub(_blank, text)
    # A set, as most texts hold neither.
    variants = dict.fromkeys((text, unbroken, _JOINT.sub(_blank, unbroken)))
    for variant in variants:
        found_at = _find(_plain(variant), search)
        if found_at:
            starts, lengths = _places(variant)
            spans += [
                (starts[first], starts[last] + lengths.get(last, 1)) for first, last in found_at
            ]
    joined = list[tuple[int, int]]()
    for start, stop in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(stop, joined[-1][1])
        else:
            joined.append((start, stop))
    return joined


def _mask(text: str, keys: tuple[str, ...], mask: str) -> str:
    pieces, end = list[str](), 0
    for start, stop in find_keys(text, keys):
        pieces += [text[end:start], mask]
        end = stop
    return "".join(pieces) + text[end:] if pieces else text


def _blank(match: re.Match[str]) -> str:
    return " " * len(match[0])  # so that places in the text stay the same


def _find(plain: str, search: _Search) -> list[tuple[int, int]]:
    """The first and last characters of the parts of keys in a text."""
    spans = []
    for form in search.whole:
        at = plain.find(form)
        while at >= 0:
            spans.append((at, at + len(form) - 1))
            at = plain.find(form, at + len(form))
    end = 0  # of what was found: a text of one character may be the key's part everywhere
    for at in range(0, len(plain) - _GRAM + 1 if search.parts else 0, _STRIDE):
        if at < end:
            continue
        for form, place in search.parts.get(plain[at : at + _GRAM], ()):
            first, last = _extend(plain, at, form, place)
            if last - first + 1 >= SHORTEST_PART:
                spans.append((first, last))
                end = max(end, last - SHORTEST_PART)
    return spans


def _extend(plain: str, at: int, form: str, place: int) -> tuple[int, int]:
    """The first and last character in a text of the part of a key of which 8 characters were found."""
    first, begin = at, place
    while first > 0 and begin > 0 and plain[first - 1] == form[begin - 1]:
        first, begin = first - 1, begin - 1
    last, end = at + _GRAM - 1, place + _GRAM - 1
    while last + 1 < len(plain) and end + 1 < len(form) and plain[last + 1] == form[end + 1]:
        last, end = last + 1, end + 1
    return first, last


def _plain(text: str) -> str:
    """The plain form of a text: escapes decoded, without white space and invisible characters, letter case apart."""
    if "\\" in text or "%" in text or "&" in text or "\x1b" in text:
        text = _ESCAPED.sub(_decoded, text).replace("\\", "")
    text = "".join(text.split())
    if text.isascii():
        return (text if text.isprintable() else _INVISIBLE.sub("", text)).lower()
    return _INVISIBLE.sub("", text).translate(_WIDE).casefold()


def _places(text: str) -> tuple[list[int], dict[int, int]]:
    """Where each character of the plain form begins in the text, and how long it is there where it is escaped."""
    starts, lengths = list[int](), dict[int, int]()
    place = 0
    escapes = [(match.start(), match.end(), _decoded(match)) for match in _ESCAPED.finditer(text)]
    for start, end, decoded in [*escapes, (len(text), len(text), "")]:
        for index in range(place, start):
            starts += [index] * len(_plain(text[index]))
        for _ in _plain(decoded):
            lengths[len(starts)] = end - start
            starts.append(start)
        place = end
    return starts, lengths


def _decoded(match: re.Match[str]) -> str:
    *hexadecimals, decimal, entity, colour, octal = match.groups()
    if colour is not None:
        return ""
    if entity is not None:
        return html.unescape(entity)
    if decimal is not None:
        code = int(decimal)
    elif octal is not None:
        code = int(octal, 8)
    else:
        code = int(next(filter(None, hexadecimals)), 16)
    return chr(code) if code <= sys.maxunicode else match[0]
