"""Web addresses: with a scheme, bare domains, and the ways around a dot (`[.]`, `hxxp`, "dot com slash me")."""

from __future__ import annotations

import re

from h2htalk.curation.anonymize.normalization import NormalizedText
from h2htalk.curation.anonymize.spans import Span, TakenCharacters
from h2htalk.curation.anonymize.structured import domains
from h2htalk.curation.anonymize.structured.number_cues import Cues

_PATH = r"[a-z0-9\-._~:/?#\[\]@!$&'()*+,;=%|]"
_SCHEME = r"(?:h(?:tt|xx|\*\*)ps?|ftp)\s?:\s?/\s?/\s?"
_WITH_SCHEME = re.compile(rf"(?<![a-z]){_SCHEME}(?={_PATH})")
_HOST = re.compile(r"(?<![a-z0-9@._%+-])(?:[a-z0-9-]{1,63}\.){1,5}[a-z]{2,24}(?![a-z0-9@_-])")
_REST = re.compile(rf"(?::[0-9]{{2,5}})?(?:[/?#]{_PATH}*)?")
_ANY_PATH = re.compile(rf"{_PATH}+")
_HIDDEN = re.compile(rf"(?<![a-z0-9@._%+-])(?:{_SCHEME})?{domains.LABEL}(?:{domains.ANY_DOT}{domains.LABEL}){{1,5}}")
_SLASHES = re.compile(
    r"(?:\s?/\s?|\s{1,2}(?:slash|forward slash)\s{1,2}|\s?斜杠\s?|\s?[(\[]\s?(?:slash"
    r"|/)\s?[)\]]\s?)[a-z0-9\-_~%=?&#]+(?:\s(?:underscore|dash|dot)\s[a-z0-9]+){0,3}"
)
_SUFFIX = re.compile(rf"{domains.ANY_DOT}(?:html?|php|aspx?|jsp)(?![a-z])")
_LABEL = domains.LABELS
_STAND_IN = re.compile(
    r"(?<![a-z0-9@._,-])(?P<host>[a-z0-9-]{2,40}(?P<sign>[,_*~|·])(?:[a-z0-9-]{2,30}(?P=sign)){0,2}(?:com"
    r"|org|net|co(?P=sign)uk|me|io|cn))(?![a-z0-9_])"
)
_NEXT_LINE = re.compile(r"\s?\n(?=[a-z0-9_-]*[0-9/_-])[a-z0-9\-_~%=?&#/.]{3,}(?=\s|$|[^a-z0-9])")
_LOOSE_STOP = re.compile(r"\.\s|。")
_FULL_STOPS = frozenset("，。！？；、（）【】《》“”‘’：")


def url_spans(normalized: NormalizedText, cues: Cues, taken: TakenCharacters) -> list[Span]:
    """Spans (places of the reading) of web addresses outside of what is taken, which they join."""
    spans = taken.keep(_with_scheme(normalized))
    spans += taken.keep(_bare(normalized, cues, taken))
    spans += taken.keep(_stood_in(normalized, cues))
    if _hides(normalized.text):
        spans += taken.keep(_hidden(normalized, cues, taken))
    return spans


def _stood_in(normalized: NormalizedText, cues: Cues) -> list[Span]:
    """Hosts with a comma or an underscore for every dot: bigkevwrites,wordpress,com."""
    spans = []
    for match in _STAND_IN.finditer(normalized.text):
        near = cues.near(*match.span())
        labels = match["host"].split(match["sign"])
        if ("url" in near.around or len(labels) > 2) and len(labels[0]) > 2:
            end = _after_host(normalized, match.start(), match.end())
            spans.append(Span(match.start(), end, "URL", 0.85))
    return spans


def _wrapped(normalized: NormalizedText, end: int) -> int:
    """Where an address ends that a line break cut behind a slash."""
    more = _NEXT_LINE.match(normalized.text, end) if "/" in normalized.text[end - 1 : end + 3] else None
    return end if more is None else max(end, _trimmed(normalized, end + 1, more.end()))


def _hides(text: str) -> bool:
    return any(
        sign in text for sign in ("dot", "d0t", "点", "。", "·", "[.]", "(.)", " .", ". ", "{.}", "point", ".\n")
    )


def _with_scheme(normalized: NormalizedText) -> list[Span]:
    spans: list[Span] = []
    at = 0
    text = normalized.text
    while match := _WITH_SCHEME.search(text, at):
        path = _ANY_PATH.match(text, match.end())
        end = _trimmed(normalized, match.start(), path.end() if path else match.end())
        end = _wrapped(normalized, _on_through_dots(normalized, match.end(), end))
        if end > match.end():
            spans.append(Span(match.start(), end, "URL", 0.98))
        at = max(end, match.end())
    return spans


def _on_through_dots(normalized: NormalizedText, host: int, end: int) -> int:
    """Where an address with a scheme ends, if a dot of its host or file was hidden."""
    text = normalized.text
    hidden = _HIDDEN.match(text, host)
    if hidden is not None and hidden.end() > end:
        stop = _ending(text, host, hidden.end())
        if stop is not None and stop > end:
            end = _after_host(normalized, host, stop)
    suffix = _SUFFIX.match(text, end)
    return suffix.end() if suffix else end


def _bare(normalized: NormalizedText, cues: Cues, taken: TakenCharacters) -> list[Span]:
    spans: list[Span] = []
    text = normalized.text
    if "." not in text:
        return spans
    last = 0
    for match in _HOST.finditer(text):
        start, end = match.span()
        if (
            start < last
            or not taken.free(start, end)
            or (text[end : end + 1] == "." and text[end + 1 : end + 2].isalnum())
        ):
            continue
        labels = match.group().split(".")
        host = end
        end = _trimmed(normalized, start, _REST.match(text, end).end())  # type: ignore[union-attr]
        end = last = _wrapped(normalized, max(end, host))
        if _believed(labels, end > host + 1, normalized, cues, start, end):
            spans.append(Span(start, end, "URL", 0.95 if end > host or labels[0] == "www" else 0.8))
    return spans


def _believed(labels: list[str], path: bool, normalized: NormalizedText, cues: Cues, start: int, end: int) -> bool:
    """Whether words with dots in between are a domain, and not a typing slip ("ok.thanks") or a file."""
    last = labels[-1]
    if not domains.is_ending(last) or not all(labels):
        return False
    if labels[0] == "www" and len(labels) > 2:
        return True
    if last in domains.words("files") and not path:
        return False
    letters = [label for label in labels[:-1] if len(label) > 1 or path]
    if not letters or (
        all(label.isdigit() for label in labels[:-1]) and not path and labels[0] not in domains.words("mail")
    ):
        return False
    if last in domains.words("weak") or len(last) > 3 or last in _WORDS:
        digit = any(char.isdigit() or char == "-" for char in labels[-2])
        cue = cues.near(start, end).distance("url") is not None
        told = digit or cue or (len(labels) > 2 and min(map(len, labels)) > 1)
        return path or (told and len(labels[-2]) > 3 and not _sentence(normalized, start, labels))
    return path or not _sentence(normalized, start, labels)


_WORDS = domains.words("words_as_endings")


def _sentence(normalized: NormalizedText, start: int, labels: list[str]) -> bool:
    """A sentence's end glued to the next one: "tired.De", "home.In"."""
    last = start + sum(len(label) + 1 for label in labels[:-1])
    return normalized.visible[last].isupper() and not normalized.visible[start].isupper()


def _hidden(normalized: NormalizedText, cues: Cues, taken: TakenCharacters) -> list[Span]:
    spans: list[Span] = []
    text = normalized.text
    at = 0
    while match := _HIDDEN.search(text, at):
        at = match.end()
        start = match.start()
        stop = _ending(text, start, match.end())
        if stop is None or stop <= start or not taken.free(start, stop):
            continue
        host = text[start:stop]
        end = _after_host(normalized, start, stop)
        if re.fullmatch(r"(?:[a-z0-9-]+\.)+[a-z]+", host):
            continue
        if _hidden_believed(normalized, start, stop, end, cues):
            spans.append(Span(start, end, "URL", 0.9))
            at = max(at, end)
    return spans


def _hidden_believed(normalized: NormalizedText, start: int, stop: int, end: int, cues: Cues) -> bool:
    text = normalized.text
    host = text[start:stop]
    labels = [label for label in _LABEL.findall(host) if label not in ("dot", "d0t", "point")]
    if len(labels) < 2 or all(label.isdigit() for label in labels[:-1]):
        return False
    if re.match(_SCHEME, host) or labels[0] == "www" or end > stop + 1:
        return True
    if len(labels[-2]) < 2:
        return False
    if re.search(domains.HIDDEN_DOT, host):
        return True
    if _LOOSE_STOP.search(text, start, stop) and normalized.visible[stop - len(labels[-1])].isupper():
        return False
    common = labels[-1] in ("com", "cn", "net", "org", "io", "top", "xyz", "uk")
    near = labels[-1] in domains.words("strong") and not _LOOSE_STOP.search(text, start, stop)
    return common or (near and cues.near(start, end).distance("url") is not None)


def _ending(text: str, start: int, end: int) -> int | None:
    """Where the host ends that begins at `start`: its last label that is an ending."""
    best: int | None = None
    for place, label in enumerate(_LABEL.finditer(text, start, end)):
        if place and domains.is_ending(label[1]):
            if best is not None and label[1] in domains.words("weak"):
                break
            best = label.end()
        elif best is not None and label[1] not in ("dot", "d0t"):
            break
    return best


def _after_host(normalized: NormalizedText, start: int, host: int) -> int:
    """Where an address ends whose host ends at `host`: ports, paths, "slash me"."""
    text = normalized.text
    rest = _REST.match(text, host)
    end = max(host, _trimmed(normalized, start, rest.end())) if rest else host
    while more := _SLASHES.match(text, end):
        end = more.end()
    suffix = _SUFFIX.match(text, end)
    if suffix is None:
        return end
    rest = _REST.match(text, suffix.end())
    return max(suffix.end(), _trimmed(normalized, start, rest.end()) if rest else 0)


def _trimmed(normalized: NormalizedText, start: int, end: int) -> int:
    """The end of an address without the sentence's marks. A wide mark ends one that is itself in plain letters."""
    shown, text = normalized.visible, normalized.text
    if shown[start].isascii():
        stop = next((i for i in range(start, end) if shown[i] in _FULL_STOPS and shown[i - 1].isascii()), end)
        end = min(end, stop)
    opened = {")": text.count("(", start, end), "]": text.count("[", start, end)}
    closed = {sign: text.count(sign, start, end) for sign in opened}
    while end > start:
        sign = text[end - 1]
        if sign in closed and closed[sign] > opened[sign]:
            closed[sign] -= 1
        elif sign not in ".,;:!?'\"*|~([":
            break
        end -= 1
    return end
