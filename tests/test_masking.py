"""No text that leaves the process holds a key, whichever form a server gave it."""

from __future__ import annotations

import base64
import html
import io
import json
import logging
import sys
import urllib.parse
from collections.abc import Callable
from email.message import Message

import pytest

from h2htalk import masking
from h2htalk.chat.error_bodies import clean
from h2htalk.errors import DataError, RoundError, quoted, shorten
from h2htalk.integrations.label_studio.client import LabelStudioClient
from h2htalk.masking import KEY_MASK, hold_environment, hold_key, mask_held, masked, masked_output
from h2htalk.rounds.argilla.client import ServerClient, connect
from support.command_line import h2htalk_here
from support.doubles.loopback import Answer, HttpServer

KEY = "mEdW9xA/b+Qz==8fL2mN-77p"


def _coded(prefix: str) -> str:
    return base64.b64encode(f"{prefix}{KEY}:".encode()).decode()


def _lines(width: int) -> str:
    return "\n".join(KEY[start : start + width] for start in range(0, len(KEY), width))


FORMS: dict[str, str] = {
    "as it is": KEY,
    "upper": KEY.upper(),
    "lower": KEY.lower(),
    "JSON": json.dumps(KEY).replace("/", "\\/"),
    "JSON in JSON": json.dumps(json.dumps(KEY).replace("/", "\\/")),
    "escapes": "".join(f"\\u{ord(sign):04x}" for sign in KEY),
    "capital escapes": "".join(
        f"\\U0000{ord(sign):04X}"[:2] + f"{ord(sign):08X}"[-4:] for sign in KEY
    ).lower(),
    "bytes": "".join(f"\\x{ord(sign):02x}" for sign in KEY),
    "URL": urllib.parse.quote(KEY, safe=""),
    "URL twice": urllib.parse.quote(urllib.parse.quote(KEY, safe=""), safe=""),
    "every character in a URL": "".join(f"%{ord(sign):02x}" for sign in KEY),
    "HTML": "".join(f"&#{ord(sign)};" for sign in KEY),
    "hexadecimal HTML": "".join(f"&#x{ord(sign):X};" for sign in KEY),
    "lines": _lines(5),
    "lines in JSON": json.dumps(_lines(5)),
    "spaces": " ".join(KEY),
    "zero width": "\u200b".join(KEY),
    "base64": _coded("user:"),
    "base64, second offset": _coded("user1:"),
    "base64, third offset": _coded("user12:"),
    "base64 in lines": "\n".join(_coded("")[start : start + 9] for start in range(0, 40, 9)),
    "base64 of URLs": base64.urlsafe_b64encode(KEY.encode()).decode(),
    "hexadecimal": KEY.encode().hex(),
    "beginning": KEY[:13],
    "end": KEY[-13:],
    "middle": KEY[5:18],
    "twice": f"{KEY}, {KEY}",
}

FORMS["invisible"] = "\u2063".join(KEY)
FORMS["control characters"] = "\x00".join(KEY)
FORMS["accents"] = "\u0301".join(KEY)
FORMS["colours"] = "\x1b[1m".join(KEY)
FORMS["lines quoted"] = _lines(5).replace("\n", "\n> ")
FORMS["list"] = json.dumps(list(KEY))
FORMS["octal"] = ""
FORMS["full width"] = ""
for sign in KEY:
    code = ord(sign)
    FORMS["octal"] += f"\\{code:03o}"
    FORMS["full width"] += chr(code + 0xFEE0)
FORMS["hexadecimal with colons"] = KEY.encode().hex(":")
FORMS["an escape before digits"] = KEY.replace("+", "\\u002B")
for name, escape in (
    ("long escapes", "\\U{:08x}"),
    ("JavaScript's URL", "%u{:04x}"),
    ("bare HTML", "&#{}"),
):
    FORMS[name] = "".join(escape.format(ord(sign)) for sign in KEY)


def _holds_key(text: str) -> bool:
    """Whether a text still holds seven characters of the key in a row, or of its base64."""
    plain = html.unescape(urllib.parse.unquote(urllib.parse.unquote(text)))
    for escape in ("\\", "\u200b", " ", "\n"):
        plain = plain.replace(escape, "")
    parts = [KEY[start : start + 7].lower() for start in range(len(KEY) - 6)]
    for prefix in ("", "x", "xx"):
        coded = base64.b64encode(f"{prefix}{KEY}".encode()).decode()[4:-4]
        parts += [coded[start : start + 7].lower() for start in range(len(coded) - 6)]
    return any(part in plain.lower() for part in parts)


@pytest.fixture(autouse=True)
def _nothing_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(masking, "_held", {})


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_masked(form: str) -> None:
    shown = masked(f"the key {FORMS[form]} is wrong", KEY)
    assert not _holds_key(shown)
    assert KEY_MASK in shown
    assert shown.startswith("the key ")
    assert shown.endswith(" is wrong")


@pytest.mark.parametrize("between", ["\x00", "\x1b", "\u2063", "\u202e", "\ue000", "\U000e0001"])
def test_no_key_is_put_together_where_signs_are_dropped(between: str) -> None:
    """What a server wrote between the characters of a key was dropped after the key had been looked for."""
    hold_key(KEY)
    cleaned = clean(f"the key {between.join(KEY)} is wrong")
    assert cleaned == f"the key {KEY_MASK} is wrong"


def test_words_and_what_is_short_stay() -> None:
    hold_key("ollama", "lm-studio", "12345678", "abc1", "Bearer", None)
    text = "ollama, lm-studio, 12345678, abc1, Bearer"
    assert mask_held(text) == text
    assert masked("abc123 abc12", "abc123", "*") == "* abc12"
    assert masked("abc123 abc12", "abc12", "*") == "abc123 abc12"


def test_the_environment_and_its_addresses_are_held() -> None:
    hold_environment(
        {
            "SOME_SECRET": "s3cr3t-value-1",
            "HTTPS_PROXY": "http://user:p%40ss-word-22@proxy:3128",
            "EDITOR": "vim-with-9-options",
            "X_AUTH": "Token t0k3n-value-3",
        }
    )
    text = "s3cr3t-value-1 p@ss-word-22 p%40ss-word-22 vim-with-9-options t0k3n-value-3"
    assert mask_held(text) == f"{KEY_MASK} {KEY_MASK} {KEY_MASK} vim-with-9-options {KEY_MASK}"


def test_errors_and_cut_texts_hold_no_key() -> None:
    hold_key(f"Bearer {KEY}")
    assert not _holds_key(str(DataError(f"sent {KEY}")))
    # A key over the place of the cut left its two halves.
    assert not _holds_key(shorten("a" * 20 + KEY + "b" * 40, 60))
    assert not _holds_key(quoted("a" * 30 + KEY + "b" * 40))


def test_logs_progress_and_tracebacks_hold_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    error = io.StringIO()
    monkeypatch.setattr(sys, "stderr", error)
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    monkeypatch.setenv("MY_API_KEY", KEY)
    with masked_output():
        print(f"progress {KEY}", file=sys.stderr)
        logger = logging.Logger("other")
        logger.addHandler(logging.StreamHandler())
        logger.warning("header %s", KEY)
    try:
        raise ValueError(f"no header: {KEY}")
    except ValueError as raised:
        sys.excepthook(ValueError, raised, raised.__traceback__)
    assert error.getvalue().count(KEY_MASK) >= 3
    assert not _holds_key(error.getvalue())


class EchoServer(HttpServer):
    """An annotation server that repeats what it was sent, in one form, with a status."""

    def __init__(self, form: Callable[[], str], status: int) -> None:
        super().__init__()
        self.form, self.status = form, status

    def serve(self, method: str, target: str, headers: Message, body: bytes) -> Answer:
        if target.startswith(("/api/v1/version", "/api/version")):
            return Answer({"version": "2.8.0"} if "v1" in target else {"release": "1.23.0"})
        return Answer({"detail": f"{'x' * 120} {self.form()} is not accepted"}, self.status)


@pytest.mark.parametrize("status", [400, 422])
@pytest.mark.parametrize(
    "form", ["as it is", "upper", "URL", "base64", "lines", "beginning", "escapes"]
)
def test_argilla_repeats_the_key(form: str, status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error message held the key of Argilla when the server repeated it."""
    with EchoServer(lambda: FORMS[form], status) as server:
        monkeypatch.setenv("ARGILLA_API_URL", server.url)
        monkeypatch.setenv("ARGILLA_API_KEY", KEY)
        with pytest.raises(RoundError, match="is not accepted") as raised:
            connect(0.1)
    assert not _holds_key(str(raised.value))


@pytest.mark.parametrize("form", ["as it is", "upper", "URL", "base64", "lines", "end", "HTML"])
def test_label_studio_repeats_the_key(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error message held the key of Label Studio when the server repeated it."""
    with EchoServer(lambda: FORMS[form], 400) as server:
        monkeypatch.setenv("LABEL_STUDIO_URL", server.url)
        monkeypatch.setenv("LABEL_STUDIO_API_KEY", KEY)
        client = LabelStudioClient.open(
            0.1, lambda _, key: {"headers": {"Authorization": f"Token {key}"}}
        )
        with pytest.raises(RoundError, match="is not accepted") as raised:
            client.get("/api/users/")
    assert not _holds_key(str(raised.value))


def test_a_password_of_a_new_account_that_the_server_repeats_is_masked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with EchoServer(lambda: KEY, 422) as server:
        monkeypatch.setenv("ARGILLA_API_URL", server.url)
        monkeypatch.setenv("ARGILLA_API_KEY", "another-key-of-the-owner-5")
        client = ServerClient.open(0.1, lambda _, key: {})
        with pytest.raises(RoundError, match="is not accepted") as raised:
            client.call("POST", "/api/v1/users", {"username": "anna", "password": KEY})
    assert not _holds_key(str(raised.value))


def test_a_command_prints_no_key_that_stands_in_its_arguments(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OTHER_TOKEN", KEY)
    done = h2htalk_here("show", f"/no/such/{KEY}")
    assert done.returncode == 2
    assert not _holds_key(done.stdout + done.stderr)
