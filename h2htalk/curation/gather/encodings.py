"""The encoding of a raw file, decided by the whole file: UTF-8, UTF-16, or one that older programs write.

A byte order mark decides, and so do the zero bytes of UTF-16. A file that is not UTF-8 has one of the encodings of
Chinese, Japanese, Korean or Russian where nearly all characters that are not ASCII are frequent ones of that language.
Else it is Windows-1252 (CP1252, which Windows programs write in Western Europe and America) where its other bytes stand
as letters of words, or as single marks. A file that mixes encodings, or has another one, stays UTF-8, and each broken
item is refused.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from functools import lru_cache
from pathlib import Path
from typing import IO, Any

UTF8, CP1252 = "utf-8", "cp1252"
UTF16 = ("utf-16", "utf-16-le", "utf-16-be")
NAMES = {
    CP1252: "Windows-1252 (CP1252)",
    "gb18030": "GB18030 (GBK)",
    "big5": "Big5",
    "cp932": "Shift-JIS (CP932)",
    "cp949": "EUC-KR (CP949)",
    "cp1251": "Windows-1251 (CP1251)",
    **dict.fromkeys(UTF16, "UTF-16"),
}
Opened = Callable[[Path], AbstractContextManager[IO[Any]]]
_CHUNK = 1 << 20
_HEAD = 4096
_SAMPLE = (
    1 << 22
)  # bytes of a file whose characters are looked at; that all of it can be decoded is always checked
# Of the bytes of a head, the share of zeros in one of the two bytes of each character: English text in UTF-16.
_ZEROS = 0.3
_HIGH_BYTES = re.compile(rb"[\x80-\xff]+")
_LETTERS = frozenset(b"\x8a\x8c\x8e\x9a\x9c\x9e\x9f" + bytes(range(0xC0, 0x100))) - frozenset(
    b"\xd7\xf7"
)
_UNDEFINED = frozenset(b"\x81\x8d\x8f\x90\x9d")
_LONGEST_RUN = (
    6  # bytes of Windows-1252 that are not ASCII in a row: two marks, and letters between them
)
_LEAST_SHARE = 0.8  # of other bytes that are plausible, in a file of Windows-1252
_LEAST_FREQUENT = 0.95  # of characters that are not ASCII, in a file of the encodings below
_LEAST_CHARACTERS = 8  # that are not ASCII, of which such an encoding is guessed
_PUNCTUATION = (
    "\u3000-\u303f\uff00-\uff60\uffe0-\uffe6\u2010-\u203b\u00b7\u00d7"
    "\u2460-\u24ff\u25a0-\u27bf\U0001f000-\U0001faff"
)
_KANA = "\u3041-\u30ff"
# Encoding -> its characters that people use, and how its most frequent ideographs begin, as bytes; the first that fits
# is taken.
_FREQUENT: Mapping[str, tuple[re.Pattern[str], range]] = {
    "cp932": (re.compile(f"[{_PUNCTUATION}{_KANA}]"), range(0x88, 0x98)),
    # Korean has the bytes of frequent Chinese characters, but Chinese not those of Korean alone.
    "cp949": (re.compile(f"[{_PUNCTUATION}\uac00-\ud7a3\u3131-\u318e]"), range(0)),
    "big5": (re.compile(f"[{_PUNCTUATION}]"), range(0xA4, 0xC7)),
    "gb18030": (re.compile(f"[{_PUNCTUATION}]"), range(0xB0, 0xD8)),
    "cp1251": (
        re.compile("[\u0410-\u044f\u0401\u0451\u2010-\u2030\u00ab\u00bb\u2116\u00a0]"),
        range(0),
    ),
}
# Without any of these a text in the encoding is another one's.
_NEEDED = {"cp932": re.compile(f"[{_KANA}]"), "cp1251": re.compile("[\u0430-\u044f]{3}")}


def find_encoding(path: Path, opened: Opened) -> str:
    """The encoding of a file as Python names it. `opened`: opens it for bytes, decompressed."""
    status = path.stat()
    return _find_encoding(path, status.st_size, status.st_mtime_ns, opened)


@lru_cache(maxsize=1024)
def _find_encoding(path: Path, size: int, changed: int, opened: Opened) -> str:
    # Each source is read twice; `size` and `changed` tell a file that was written again.
    with opened(path) as file:
        head = file.read(_HEAD)
    if wide := _utf16(head):
        return wide
    with opened(path) as file:
        if _is_utf8(file):
            return UTF8
    with opened(path) as file:
        sample = file.read(_SAMPLE)
    if encoding := _by_frequent_characters(sample):
        with opened(path) as file:
            if _decodes_whole(file, encoding):
                return encoding
    with opened(path) as file:
        return CP1252 if _is_cp1252(file) else UTF8


def _utf16(head: bytes) -> str:
    """UTF-16 by its byte order mark, or by its zero bytes; empty for other encodings."""
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    pairs = len(head) // 2
    if pairs < 2:
        return ""
    if head[1 : 2 * pairs : 2].count(0) > _ZEROS * pairs and not head[0 : 2 * pairs : 2].count(0):
        return "utf-16-le"
    if head[0 : 2 * pairs : 2].count(0) > _ZEROS * pairs and not head[1 : 2 * pairs : 2].count(0):
        return "utf-16-be"
    return ""


def _is_utf8(file: IO[bytes]) -> bool:
    return _decodes_whole(file, UTF8)


def _decodes_whole(file: IO[bytes], encoding: str) -> bool:
    decoder = codecs.getincrementaldecoder(encoding)()
    try:
        while chunk := file.read(_CHUNK):
            decoder.decode(chunk)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def _by_frequent_characters(sample: bytes) -> str:
    """The encoding in which nearly all characters of a text are frequent ones; empty where there is none."""
    return next(
        (
            encoding
            for encoding in _FREQUENT
            if _share_of_frequent(sample, encoding) >= _LEAST_FREQUENT
        ),
        "",
    )


def _share_of_frequent(sample: bytes, encoding: str) -> float:
    """The share of frequent characters among those that are not ASCII; 0 where the sample is not in the encoding."""
    try:
        # The end of the sample may be in the middle of a character.
        text = codecs.getincrementaldecoder(encoding)().decode(sample)
    except UnicodeDecodeError:
        return 0.0
    others = "".join(re.findall(r"[^\x00-\x7f]+", text))
    needed = _NEEDED.get(encoding)
    if len(others) < _LEAST_CHARACTERS or (needed is not None and not needed.search(text)):
        return 0.0
    characters, leads = _FREQUENT[encoding]
    frequent = len(characters.findall(others))
    if leads:
        ideographs = "".join(re.findall("[\u4e00-\u9fff]+", others))
        encoded = ideographs.encode(encoding, "ignore")
        frequent += sum(lead in leads for lead in encoded[::2])
    return frequent / len(others)


def _is_cp1252(file: IO[bytes]) -> bool:
    """Whether the bytes that are not ASCII are single letters and marks of Windows-1252, and none is UTF-8."""
    plausible = 0
    others = 0
    # A run that the end of a chunk cuts counts as two, which changes no share.
    while chunk := file.read(_CHUNK):
        for run in _HIGH_BYTES.finditer(chunk):
            if len(run[0]) > 1 and _decodes(run[0]):
                return False
            around = chunk[max(run.start() - 1, 0) : run.start()] + chunk[run.end() : run.end() + 1]
            if _plausible(run[0], around):
                plausible += 1
            else:
                others += 1
    return plausible > 0 and plausible >= _LEAST_SHARE * (plausible + others)


def _decodes(run: bytes) -> bool:
    try:
        run.decode(UTF8)
    except UnicodeDecodeError:
        return False
    return True


def _plausible(run: bytes, around: bytes) -> bool:
    """Whether some bytes between ASCII are marks, or letters of a word: `é`, `’`, `çã`, `„ß“`."""
    if len(run) > _LONGEST_RUN or not _UNDEFINED.isdisjoint(run):
        return False
    letters = sum(byte in _LETTERS for byte in run)
    if not letters:
        return len(run) <= 2
    is_in_word = any(chr(byte).isalpha() for byte in around)
    # A letter alone, which stands between marks.
    is_quoted = letters == 1 and len(run) == 3 and run[1] in _LETTERS
    return letters <= 3 and (is_in_word or is_quoted)
