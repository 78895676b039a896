"""spaCy's English tokenizer with the treebank's habits: what UD English-EWT splits and what it keeps together.

The result is spaCy's own `Tokenizer`: its patterns are stored with the pipeline, so loading needs none of this.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable

from pipelines.treebanks import Sentence
from spacy.language import Language
from spacy.tokenizer import Tokenizer
from spacy.util import compile_infix_regex, compile_prefix_regex, compile_suffix_regex

# A run of marks is one word: `!!`, `?!`, `...`, `<<`, `====`.
RUNS = (
    r"(?=[.,]*[!?])[!?.,]+",
    r"\.{2,}",
    r"(?:<+|>+|=+|\*+|_+|~+|\++|#+|-{2,}|`+|\)\)+|\(\(+|\$\$+)",
)
# A hyphen after one of these joins: `e-mail`, `co-workers`, `non-stop`.
JOINING = (
    "e co re ex un non pre pro mid sub anti multi post semi inter over mini ultra de bi tri micro"
)
SPLIT_HYPHEN = (
    "(?<=[A-Za-z])"
    + "".join(
        rf"(?<!\b{''.join(f'[{letter.upper()}{letter}]' for letter in part)})"
        for part in JOINING.split()
    )
    + "-(?=[A-Za-z])"
)
# An exception is taken from the treebank when it is seen so often, and so nearly always.
SEEN, SHARE = 3, 0.8
ORDINARY = re.compile(r"[a-z]+[.'’]?[a-z]*[.]?")


def english_tokenizer(nlp: Language, sentences: Iterable[Sentence]) -> Tokenizer:
    """A tokenizer for `nlp`, with exceptions as the training sentences show them."""
    defaults = nlp.Defaults
    infixes = [rule for rule in defaults.infixes if "-" not in rule and "[+\\-\\*^]" not in rule]
    hyphens = [
        SPLIT_HYPHEN,
        r"(?<=[A-Za-z])-(?=[0-9])|(?<=[0-9])-(?=[A-Za-z])",
        r"(?<=[A-Za-z]{2})/(?=[A-Za-z]{2})",
        r"(?<=[a-z])(?:--+|—|–|\.{2,}|[!?]+)(?=[A-Za-z\"'])",
    ]
    tokenizer = Tokenizer(
        nlp.vocab,
        rules=defaults.tokenizer_exceptions,
        prefix_search=compile_prefix_regex([*RUNS, *defaults.prefixes]).search,
        suffix_search=compile_suffix_regex(
            [*RUNS, r"(?<=[0-9])(?:am|pm|AM|PM)", *defaults.suffixes]
        ).search,
        infix_finditer=compile_infix_regex([*infixes, *hyphens]).finditer,
        url_match=defaults.url_match,
    )
    for text, parts in exceptions(tokenizer, sentences).items():
        tokenizer.add_special_case(text, [{"ORTH": part} for part in parts])
    return tokenizer


def exceptions(tokenizer: Tokenizer, sentences: Iterable[Sentence]) -> dict[str, tuple[str, ...]]:
    """Stretches between spaces that the treebank cuts in its own way, and how.

    Only of lower-case letters and one full stop or apostrophe: names and codes of the treebank's texts do not ship.
    """
    seen: dict[str, Counter[tuple[str, ...]]] = defaultdict(Counter)
    for sentence in sentences:
        parts: list[str] = []
        for word in sentence.words:
            parts.append(word.form)
            if word.space_after:
                seen["".join(parts)][tuple(parts)] += 1
                parts = []
    found: dict[str, tuple[str, ...]] = {}
    for text, cuts in sorted(seen.items()):
        parts_, count = cuts.most_common(1)[0]
        own = tuple(token.text for token in tokenizer(text))
        if not ORDINARY.fullmatch(text):
            continue
        if own != parts_ and count >= SEEN and count >= SHARE * cuts.total():
            found[text] = parts_
    return found
