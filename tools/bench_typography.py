"""What unseen differences and typography cost: the references of bundled splits, rewritten, as the replies of a model.

python tools/bench_typography.py [--split mini] [--split instructions] ...

Prints for each language and change 100 times the mean of the six lexical values: on the raw texts, as version 1 of the
metric had it; as the metric is now; and folded. (Unchanged references have a little less than 100: a text of fewer than
four tokens has no BLEU-4.) Then the CPU time of the two forms.
"""

from __future__ import annotations

import argparse
import time
import unicodedata
from collections.abc import Callable, Sequence
from statistics import fmean

from h2htalk.benchmark.metrics.lexical import folded_means, lexical_scores, scores_of_tokens
from h2htalk.data.splits import load_split
from h2htalk.text.tokens import tokenize
from h2htalk.text.typography import folded_text, seen_text

CURLY = str.maketrans({"'": "’", '"': "”"})
HALF_WIDTH = str.maketrans("，。！？；：（）“”‘’、", ",.!?;:()\"\"'',")
CHANGES: dict[str, Callable[[str], str]] = {
    "none": str,
    "CRLF": lambda text: text.replace("\n", "\r\n"),
    "no-break spaces (U+00A0)": lambda text: text.replace(" ", "\u00a0"),
    "ideographic spaces (U+3000)": lambda text: text.replace(" ", "\u3000"),
    "decomposed letters (NFD)": lambda text: unicodedata.normalize("NFD", text),
    "byte order mark (U+FEFF)": lambda text: "\ufeff" + text,
    "line separators (U+2028)": lambda text: text.replace("\n", "\u2028"),
    "a zero-width space (U+200B) after each mark": lambda text: text.replace(
        ",", ",\u200b"
    ).replace("，", "，\u200b"),
    "typographic quotes": lambda text: text.translate(CURLY),
    "half-width marks": lambda text: text.translate(HALF_WIDTH),
}


def lexical_mean_of_raw_texts(
    replies: Sequence[str], references: Sequence[str], language: str
) -> float:
    scores = []
    for reply, reference in zip(replies, references, strict=True):
        scores.append(
            fmean(scores_of_tokens(tokenize(reply, language), tokenize(reference, language)))
        )
    return 100 * fmean(scores)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--split", action="append", help="default: mini, instructions, arcs")
    splits = parser.parse_args().split or ["mini", "instructions", "arcs"]
    scenarios = [scenario for name in splits for scenario in load_split(name).scenarios]
    for language in ("en", "zh"):
        references = [one.reference for one in scenarios if one.language == language]
        languages = [language] * len(references)
        print(f"{language}: {len(references)} references of {', '.join(splits)}")
        for name, change in CHANGES.items():
            replies = [change(text) for text in references]
            raw = lexical_mean_of_raw_texts(replies, references, language)
            scores = lexical_scores(replies, references, languages)
            folded = 100 * fmean(folded_means(replies, references, languages, "f1", scores))
            now = 100 * fmean(fmean(values) for values in scores)
            changed = sum(
                reply != reference for reply, reference in zip(replies, references, strict=True)
            )
            print(
                f"  {name:44} {changed:5} changed  version 1 {raw:6.2f}  now {now:6.2f}  folded {folded:6.2f}"
            )
        start = time.process_time()
        seen = [seen_text(text) for text in references]
        middle = time.process_time()
        for text in seen:
            folded_text(text, language)
        end = time.process_time()
        count = len(references)
        seen_time = 1e6 * (middle - start) / count
        folded_time = 1e6 * (end - middle) / count
        print(f"  seen_text {seen_time:.0f} us a text, folded_text {folded_time:.0f} us a text")


if __name__ == "__main__":
    main()
