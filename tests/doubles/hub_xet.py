"""Files that hf-xet uploads: put together from xorbs (compressed chunks) and shards (which chunks make up a file).

The formats: https://huggingface.co/docs/xet/xorb and https://huggingface.co/docs/xet/shard.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

_ENTRY = 48  # bytes of each record of a shard
_VERIFICATION, _METADATA = 1 << 31, 1 << 30  # flags of a file: what follows its segments
_STORED, _LZ4, _GROUPED_LZ4 = range(3)


class XetStore:
    """The content-addressed store; `files` are the files of all shards, by SHA-256."""

    def __init__(self) -> None:
        self.xorbs: dict[str, list[bytes]] = {}
        self.files: dict[str, bytes] = {}

    def add_xorb(self, name: str, body: bytes) -> bool:
        """Store a xorb; whether it is new."""
        new = name not in self.xorbs
        self.xorbs[name] = list(_chunks(body))
        return new

    def add_shard(self, body: bytes) -> None:
        """Read the files of a shard. Their xorbs must have come before."""
        at = _ENTRY
        while body[at : at + 32] != b"\xff" * 32:
            flags, count = struct.unpack_from("<II", body, at + 32)
            segments = range(at + _ENTRY, at + _ENTRY * (count + 1), _ENTRY)
            content = b"".join(self._segment(body, segment) for segment in segments)
            at += _ENTRY * (1 + count * (2 if flags & _VERIFICATION else 1))
            if flags & _METADATA:
                self.files[_hash(body, at)] = content
                at += _ENTRY

    def _segment(self, body: bytes, at: int) -> bytes:
        first, end = struct.unpack_from("<II", body, at + 40)
        return b"".join(self.xorbs[_hash(body, at)][first:end])


def _hash(body: bytes, at: int) -> str:
    """A hash as addresses write it: four 64-bit words, each with its most significant digit first."""
    return "".join(f"{word:016x}" for word in struct.unpack_from("<4Q", body, at))


def _chunks(body: bytes) -> Iterator[bytes]:
    at = 0
    while at + 8 <= len(body) and body[at] == 0:  # a footer starts with its name
        size, scheme, whole = int.from_bytes(body[at + 1 : at + 4], "little"), body[at + 4], body[at + 5 : at + 8]
        data = body[at + 8 : at + 8 + size]
        at += 8 + size
        if scheme != _STORED:
            data = _lz4_frame(data)
        yield _ungroup(data) if scheme == _GROUPED_LZ4 else data
        assert len(whole) == 3


def _ungroup(data: bytes) -> bytes:
    """Undo the grouping of every fourth byte."""
    out = bytearray(len(data))
    at = 0
    for first in range(4):
        count = len(out[first::4])
        out[first::4] = data[at : at + count]
        at += count
    return bytes(out)


def _lz4_frame(data: bytes) -> bytes:
    assert data[:4] == b"\x04\x22\x4d\x18"
    flags, at = data[4], 7 + (8 if data[4] & 8 else 0) + (4 if data[4] & 1 else 0)
    out = bytearray()
    while size := int.from_bytes(data[at : at + 4], "little"):
        stored, size = size >> 31, size & 0x7FFFFFFF
        block = data[at + 4 : at + 4 + size]
        at += 4 + size + (4 if flags & 16 else 0)
        if stored:
            out += block
        else:
            _lz4_block(block, out)
    return bytes(out)


def _lz4_block(block: bytes, out: bytearray) -> None:
    at = 0

    def length(short: int) -> int:
        nonlocal at
        more = 255 if short == 15 else 0
        while more == 255:
            more, at = block[at], at + 1
            short += more
        return short

    while at < len(block):
        token, at = block[at], at + 1
        literals = length(token >> 4)
        out += block[at : at + literals]
        at += literals
        if at >= len(block):
            return
        offset, at = int.from_bytes(block[at : at + 2], "little"), at + 2
        start = len(out) - offset
        for number in range(length(token & 15) + 4):
            out.append(out[start + number])
