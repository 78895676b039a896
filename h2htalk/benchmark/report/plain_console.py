"""Text onto a terminal as it is, whoever wrote it."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from h2htalk.text.printable import printable


class PlainConsole:
    """Prints text as it is: no markup, no control characters, nothing that an ASCII terminal cannot show."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.ascii = console.options.ascii_only

    def safe(self, text: str, style: str = "") -> Text:
        """One line of text, made harmless."""
        shown = printable(text)
        return Text(shown.encode("ascii", "backslashreplace").decode() if self.ascii else shown, style)

    def line(self, text: str, style: str = "") -> None:
        """Print one line of text, wrapped at words."""
        self.console.print(self.safe(text, style))

    def half_width(self, text: str) -> str:
        """Text with `±` as this terminal can show it."""
        return text.replace("±", "+-") if self.ascii else text
