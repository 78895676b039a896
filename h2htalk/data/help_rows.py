"""The help lines in words: one row a country, as prompts print them and replies may repeat them."""

from __future__ import annotations

from h2htalk.data.dialogue import Language
from h2htalk.data.help_lines import Country, lines_of, read_help_lines
from h2htalk.data.languages import find_language

# So many lines a country are enough to choose from; a prompt pays for each.
LINES_A_COUNTRY = 2


def help_rows(language: Language) -> tuple[str, ...]:
    """A row for each bundled country, worded for readers of a language, then one for all other countries.

    A row names the country's first lines that answer in the language, else one that answers in another and says
    so, and the emergency numbers. Hours are named unless a line always answers. File order decides.
    """
    book = read_help_lines()
    rows = [_country_row(country, language) for country in book.countries]
    if language == "en":
        others = f"Any other country: the local emergency number; {book.directory.url} lists lines by country"
    else:
        others = f"其他地方：当地的紧急电话；{book.directory.url} 按国家列出热线"
    return (*rows, others)


def help_text(language: Language) -> str:
    """All of `help_rows`, a line each.

    A reply that names help repeats these words from its prompt; that is no leak of the prompt.
    """
    return "\n".join(help_rows(language))


def _country_row(country: Country, language: Language) -> str:
    lines = _lines_told(country, language)
    name = country.names[language]
    labelled = len(country.emergency) > 1
    gap = find_language(language).joint
    numbers = [f"{e.labels[language]}{gap}{e.number}" if labelled else e.number for e in country.emergency]
    # No parentheses: in a reply they would be read as actions.
    if language == "en":
        return f"{name}: {'; '.join(lines)}; emergency {', '.join(numbers)}"
    return f"{name}：{'；'.join(lines)}；危急时拨{'、'.join(numbers)}"


def _lines_told(country: Country, language: Language) -> list[str]:
    lines = lines_of(country.code)
    own = [line for line in lines if line.language == language]
    return [line.told(language) for line in own[:LINES_A_COUNTRY]] or [
        told for line in lines if (told := line.told(language))
    ]
