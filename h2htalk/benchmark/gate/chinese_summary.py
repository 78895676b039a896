"""A gate's verdicts and who answered them, in Chinese, beside its English report."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from importlib.resources import files

from h2htalk.benchmark.estimate_text import format_interval
from h2htalk.benchmark.gate.gate import GateReport, Verdict
from h2htalk.benchmark.raters import describe_raters, describe_rule
from h2htalk.benchmark.statistics.estimates import Estimate
from h2htalk.benchmark.studies.judge_agreement import LEAST_OF_LANGUAGE, LEAST_POINTS, agreement_of

TITLE = "中文摘要"
_WORDS = tomllib.loads((files("h2htalk.benchmark.gate") / "chinese.toml").read_text("utf-8"))


def chinese_lines(report: GateReport) -> Iterator[str]:
    """Yield the conclusion, a line for each criterion with who answered it, and what planted replies find."""
    against = f"，对照 {report.reference.label}" if report.reference else ""
    yield f"{report.run.label}{against}：{_WORDS['headlines'][report.headline]}"
    for verdict in report.verdicts:
        yield _criterion_line(verdict)
    if any(verdict.raters is not None and verdict.raters.asks_judge for verdict in report.verdicts):
        yield describe_rule("zh")
        if report.policy.needs_calibrated:
            yield _calibration_line(report)
    yield "未见变差或超限，不等于证明没有变差；理由与检验方法见英文报告。"


def _calibration_line(report: GateReport) -> str:
    """How the run's judge agrees with people, which its policy asks about."""
    texts = []
    for language, pairs in report.run.calibration.items():
        agreement = agreement_of(pairs)
        name = _WORDS["languages"].get(language, language)
        texts.append(
            f"{name} {agreement.points:,} 条中一致 {agreement.equal:,} 条，kappa {agreement.kappa:.2f}"
        )
    text = "；".join(texts) or "没有评审模型与人工都判断过的要点"
    return (
        f"评审模型与人工（有无过错）：{text}。策略要求共 {LEAST_POINTS} 条、每种语言 {LEAST_OF_LANGUAGE} 条，"
        f"kappa 不低于 {report.policy.agreement:g}。"
    )


def raters_line(verdict: Verdict) -> str:
    """Who answered a criterion."""
    if verdict.raters is None:
        return "由程序计算，无人判断回复内容"
    return f"由谁判断：{describe_raters(verdict.raters, 'zh')}"


def _criterion_line(verdict: Verdict) -> str:
    figures = verdict.compared_figures or (verdict.run,)
    ties = _ties(figures[0])
    return f"{figure_name(verdict.criterion.figure)}：{_WORDS['verdicts'][verdict.word]}；{raters_line(verdict)}{ties}"


def _ties(figure: Estimate) -> str:
    text = f"；人工意见各半、未计入的 {figure.tied:,} 条若全记为 0 或全记为 1，比率为 {{}} %"
    return format_interval(figure.tie_range, ".1f", 100.0, separator=" % 至 ", frame=text)


def figure_name(figure: str) -> str:
    """The Chinese name of a figure; of one without such a name its own."""
    kind, _, aspect = figure.partition(".")
    kind_name = _WORDS["kinds"].get(kind)
    if aspect and kind_name:
        return f"{kind_name}（{aspect}）"
    return str(_WORDS["figures"].get(figure, figure))
