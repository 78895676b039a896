"""Hold the prompt tokens that a server reports against the characters that were sent.

Some servers cut a prompt that is longer than their context and answer with status 200 (Ollama's default context is
4,096 tokens; 2,050 are reported for each prompt then). The start of the prompt is what goes: persona and SAP. Three
signs of it: many prompts of different length have the very count that none exceeds; the count stops growing with
length; or prompts have fewer tokens than a tokenizer makes of texts of their length.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from h2htalk.data.languages import find_language
from h2htalk.errors import counted

LEAST_PROMPTS = 6  # of one language, for a look at how counts grow
LEAST_AT_CEILING, CEILING_SHARE = (
    4,
    0.1,
)  # prompts with the largest count: so many, and this share of all
LEAST_SPREAD = 1.1  # longest by shortest of those prompts
LEAST_GROWTH = 1.3  # length of the longer third by that of the shorter third
HALTED = 0.25  # of that growth: below it the counts stopped growing
MOST_WORDS = 2.0  # words a token of whole prompts; tokenizers make one token or more of most words


@dataclass(frozen=True, slots=True)
class PromptSize:
    """A prompt: its characters, and its tokens as the server reports them."""

    language: str
    characters: int
    tokens: int


@dataclass(frozen=True, slots=True)
class PromptSizes:
    """The least, median and most of the prompts of a run whose tokens were reported."""

    prompts: int
    characters: tuple[int, int, int]
    tokens: tuple[int, int, int]

    def text(self) -> str:
        """Both rows in one line."""
        names = "least {:,}, median {:,}, most {:,}"
        return f"{names.format(*self.tokens)} for {names.format(*self.characters)} characters sent"


def describe_prompts(sizes: Sequence[PromptSize]) -> PromptSizes | None:
    """The sizes of prompts in three figures each; None where no token count was reported."""
    if not sizes:
        return None
    characters = [size.characters for size in sizes]
    tokens = [size.tokens for size in sizes]
    return PromptSizes(prompts=len(sizes), characters=_range(characters), tokens=_range(tokens))


def _range(values: Sequence[int]) -> tuple[int, int, int]:
    return min(values), round(median(values)), max(values)


def size_warnings(sizes: Sequence[PromptSize]) -> Iterator[str]:
    """Yield a warning where the counts say that the server cut prompts."""
    cut = _at_ceiling(sizes)
    if cut:
        shortest = min(size.characters for size in cut)
        longest = max(size.characters for size in cut)
        what = (
            f"the server reports {cut[0].tokens:,} prompt tokens for {counted(len(cut), 'prompt')}"
        )
        yield f"{what} of {shortest:,} to {longest:,} characters: {_ADVICE}"
        return
    groups = defaultdict[str, list[PromptSize]](list)
    for size in sizes:
        groups[size.language].append(size)
    for language, prompts in groups.items():
        if _halts(prompts):
            what = "the prompt tokens that the server reports do not grow with the prompts"
            yield f"{what} ({language}; {_thirds_text(prompts)}): {_ADVICE}"
            continue
        few = [size for size in prompts if _has_too_few(size)]
        if len(few) >= max(LEAST_AT_CEILING, len(prompts) / 2):
            median_prompt = sorted(few, key=lambda size: size.characters)[len(few) // 2]
            what = (
                f"the server reports {median_prompt.tokens:,} prompt tokens for {median_prompt.characters:,} "
                f"characters"
            )
            yield f"{what} ({language}, and alike for {len(few):,} prompts), fewer than any tokenizer makes: {_ADVICE}"


_ADVICE = (
    "it seems to cut them, persona and SAP first; give it a larger context (Ollama: OLLAMA_CONTEXT_LENGTH or num_ctx; "
    "llama.cpp: -c) and choose a new --out"
)


def _at_ceiling(sizes: Sequence[PromptSize]) -> list[PromptSize]:
    """The prompts that have the largest count, where they are many and differ in length; else none."""
    counts = Counter(size.tokens for size in sizes)
    if not counts:
        return []
    most = max(counts)
    cut = [size for size in sizes if size.tokens == most]
    lengths = {size.characters for size in cut}
    enough = (
        len(cut) >= max(LEAST_AT_CEILING, CEILING_SHARE * len(sizes))
        and len(lengths) >= LEAST_AT_CEILING
    )
    return cut if enough and max(lengths) >= LEAST_SPREAD * min(lengths) else []


def _has_too_few(prompt: PromptSize) -> bool:
    """Whether a prompt has fewer tokens than a tokenizer makes of a text of its length."""
    return (
        prompt.characters > MOST_WORDS * find_language(prompt.language).word_length * prompt.tokens
    )


def _thirds(prompts: Sequence[PromptSize]) -> tuple[PromptSize, PromptSize]:
    """A prompt of the median size of the shorter third, and one of the longer third."""
    ordered = sorted(prompts, key=lambda size: size.characters)
    third = len(ordered) // 3
    medians = []
    for part in (ordered[:third], ordered[-third:]):
        characters = round(median(size.characters for size in part))
        medians.append(
            PromptSize(part[0].language, characters, round(median(size.tokens for size in part)))
        )
    return medians[0], medians[1]


def _halts(prompts: Sequence[PromptSize]) -> bool:
    """Whether the counts of prompts of one language stop growing with their length."""
    if len(prompts) < LEAST_PROMPTS:
        return False
    short, long = _thirds(prompts)
    if (
        short.tokens == 0
        or short.characters == 0
        or long.characters < LEAST_GROWTH * short.characters
    ):
        return False
    growth = long.tokens / short.tokens - 1
    expected = long.characters / short.characters - 1
    return growth < HALTED * expected


def _thirds_text(prompts: Sequence[PromptSize]) -> str:
    short, long = _thirds(prompts)
    return f"{short.tokens:,} for {short.characters:,} characters, {long.tokens:,} for {long.characters:,}"
