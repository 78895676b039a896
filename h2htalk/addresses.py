"""Passwords and keys in addresses (`s3://key:secret@bucket`, `https://host/run?token=...`): found, refused, not shown.

An address is stored in manifests and links and shown in messages, so no password may stand in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import unquote

PASSWORD_MASK = "[password masked]"
# A password may hold `/`, as keys of S3 do, and a user `@`, as mail addresses do; digits up to a slash are a port.
_PASSWORD = re.compile(r"(://[^/\s:\[]*):(?![0-9]{1,5}(?:[/?#]|$))[^\s@]+(?=@)")
# A name alone is none (`abfs://container@account`), unless HTTP would send it: `https://TOKEN@host`.
_USER = re.compile(r"(https?://)[^/\s@:]{8,}(?=@)", re.IGNORECASE)
_PARAMETER = re.compile(r"[?&;#]([^=?&;#\s]+)=([^&;#\s]+)")
_SECRET_NAME = re.compile(
    r".*(?:token|secret|passw|pwd|passphrase|signature|credential|(?:api|access|account|shared)[-_]?key|auth"
    r"|bearer|jwt).*|sig|key|sas|pass|pw|code",
    re.IGNORECASE | re.DOTALL,
)
_SCHEME = re.compile(r"^\s*[\w.+:-]+://")
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://\S*")


def without_passwords(text: str) -> str:
    """A text whose addresses show no password, user of a web address, or key among their parameters."""
    return _ADDRESS.sub(_masked_address, text) if "://" in text else text


def _masked_address(match: re.Match[str]) -> str:
    address = _PASSWORD.sub(rf"\1:{PASSWORD_MASK}", match[0])
    address = _USER.sub(rf"\1{PASSWORD_MASK}", address)
    return _PARAMETER.sub(_masked_parameter, address)


def _masked_parameter(match: re.Match[str]) -> str:
    name, value = match.groups()
    # A server reads `access%5Ftoken` as `access_token`.
    if _SECRET_NAME.fullmatch(unquote(name)) is None:
        return match[0]
    return match[0].removesuffix(value) + PASSWORD_MASK


def holds_password(texts: Iterable[str]) -> bool:
    """Whether an address in one of the texts holds what `without_passwords` takes out."""
    for text in texts:
        # A text that is an address as a whole may have white space in its password.
        whole = _SCHEME.sub("", text) != text
        joined = "".join(text.split()) if whole else text
        if without_passwords(joined) != joined:
            return True
    return False


REFUSED = (
    "an address holds a user with a password, or a key among its parameters, which would be stored and shown; take it "
    "out: keys of storage come from the environment or the files of the storage's own library (such as "
    "AWS_ACCESS_KEY_ID), those of models from the variables that docs/reference/servers.md names, those of an app from "
    "[headers] of the adapter"
)
