"""With what an analysis was made: two people whose figures differ find the reason here."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

from h2htalk.analysis.analyze import Analysis, SplitFacts

# Packages whose version can change a figure.
_PACKAGES = ("spacy", "lemminflect", "jieba", "sacrebleu", "tokenizers", "wordcloud", "matplotlib")


def made_with(analysis: Analysis) -> dict[str, str]:
    """What was analysed and with what, as texts by name."""
    from h2htalk.text.tokens import tokenizer_signature

    spec = analysis.spec
    parts = [part.language for part in analysis.split.languages]
    return {
        "split": _split_text(analysis.split.facts),
        **({"against": _split_text(analysis.against.facts)} if analysis.against else {}),
        "languages": ", ".join(parts),
        "limit": "none" if spec.limit is None else f"{spec.limit:,} scenarios, stratified",
        "words": tokenizer_signature(),
        "model tokens": analysis.tokenizer or "not counted",
        **{f"parser {model.language}": f"{model.name} {model.version}" for model in analysis.parsers},
        "embedder": analysis.embedder or "none",
        **{f"font {language}": font_name(language) for language in parts},
        "seed": str(spec.seed),
        "h2htalk": analysis.package_version,
        **{package: _version(package) for package in _PACKAGES},
    }


def _split_text(facts: SplitFacts) -> str:
    analysed = sum(facts.scenarios.values())
    whole = (
        "whole" if analysed == facts.total else f"{analysed:,} of {facts.total:,} scenarios, {facts.analysed}"
    )
    return f"{facts.name} {facts.version}, fingerprint {facts.fingerprint}, {whole}"


def font_name(language: str) -> str:
    """The font that the figures of a language are drawn with, and where it comes from."""
    from h2htalk.analysis.figures.fonts import find_font

    font = find_font(language)
    return f"{font.name} ({font.source})"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
