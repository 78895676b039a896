"""Templates of others are rendered under limits of memory and time: none takes the machine with it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from h2htalk.errors import ConfigError
from h2htalk.text import template_process
from h2htalk.text.jinja_templates import Templates, read_templates
from support.memory import measured_memory, watched_memory

GREEDY = {
    "center": '{{ "x".center(10**10) }}',
    "ljust": '{{ "x".ljust(width=9999999999) }}',
    "zfill": '{{ "1".zfill(9999999999) }}',
    "center as a filter": '{{ "x"|center(10**10)|length }}',
    "indent": '{{ "x"|indent(10**9, first=true)|length }}',
    "percent": '{{ ("%" ~ 9999999999 ~ "d") % 1 }}',
    "percent with a star": '{{ "%*d" % (9999999999, 1) }}',
    "format as a filter": '{{ "%9999999999d"|format(1)|length }}',
    "format": '{{ "{:9999999999}".format(1) }}',
    "format with a nested width": '{{ "{:{}}".format(1, 9999999999)|length }}',
    "replace": '{% set a = "x" * 900000 %}{{ a.replace("x", a)|length }}',
    "join": '{% set a = "x" * 900000 %}{{ range(90000)|map("replace", 0, a)|join(a)|length }}',
    "join of one text": '{% set a = "x" * 900000 %}{{ ([a] * 90000)|join|length }}',
    "doubling": '{% set n = namespace(a="xxxxxxxx") %}{% for i in range(60) %}{% set n.a = n.a ~ n.a %}{% endfor %}',
    "doubling lists": "{% set n = namespace(a=[1]) %}{% for i in range(60) %}{% set n.a = [n.a, n.a] %}{% endfor %}"
    "{{ n.a|string|length }}",
    "power": "{{ (10 ** 100000) ** 100000 }}",
    "batch": '{{ [1]|batch(9999999999, "x")|list|length }}',
    "slice": "{{ [1]|slice(9999999999)|list|length }}",
    "constant in a block": '{% if "x"|center(10**10) %}{% endif %}',
}
SLOW = {
    "loops": "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
    "macros": "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(60) }}",
    "slow operation": '{% set a = "a" * 900000 %}{% for i in range(99999) %}{{ "" if a.count("ab") }}{% endfor %}',
    "big numbers": "{% set n = namespace(a=3) %}{% for i in range(99) %}{% set n.a = n.a * n.a %}{% endfor %}",
}


def _templates(folder: Path, text: str) -> Templates:
    (folder / "en").mkdir(exist_ok=True)
    (folder / "en" / "page.j2").write_text(text, encoding="utf-8")
    return Templates.of(read_templates(folder))


def _child() -> int | None:
    """The process that renders templates, where it runs."""
    process = template_process._processes.get(template_process.PROMPTS)
    return process.child.pid if process is not None and process.child is not None else None


@pytest.mark.parametrize("name", GREEDY)
def test_no_template_fills_the_memory(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`"x".center(10**10)` took 13 GB; other operations were bounded by nothing."""
    monkeypatch.setattr(template_process, "LONGEST_WAIT", 60.0)
    if name == "doubling lists":
        # It writes 50 MB a second: the limit of time ends it before that of memory.
        monkeypatch.setattr(template_process, "LONGEST_RENDER", 1)
        monkeypatch.setattr(template_process, "_processes", {})
    with measured_memory() as peak, watched_memory(_child) as peak_of_child:
        with pytest.raises(ConfigError, match=r"page\.j2"):
            _templates(tmp_path, GREEDY[name]).render("en/page.j2", {})
        assert peak() < 200_000  # KiB of this process
    assert peak_of_child() < 1_200_000


def test_no_template_fills_the_memory_while_it_is_compiled(tmp_path: Path) -> None:
    """A page of a megabyte took 2 GB and 15 seconds of this process before it was rendered."""
    with measured_memory() as peak:
        _templates(tmp_path, "{{ a }}" * 14_000).parse("en/page.j2")
        assert peak() < 400_000  # KiB
    with pytest.raises(ConfigError, match=r"page\.j2: not a file of at most 100,000 bytes"):
        _templates(tmp_path, "{{ a }}" * 15_000)


@pytest.mark.parametrize("name", SLOW)
def test_no_template_takes_all_time(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A silent loop ran for more than 70 seconds. The limit is shortened here through the time that is waited."""
    _templates(tmp_path, "{{ 1 }}").render("en/page.j2", {})  # the child runs
    monkeypatch.setattr(template_process, "LONGEST_WAIT", 1.0)
    with pytest.raises(ConfigError, match=r"page\.j2.*(seconds|too large)"):
        _templates(tmp_path, SLOW[name]).render("en/page.j2", {})


def test_the_processor_s_time_is_limited_by_the_operating_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(template_process, "LONGEST_RENDER", 1)
    monkeypatch.setattr(template_process, "_processes", {})
    began = os.times().children_user
    with pytest.raises(ConfigError, match="takes more than 10 seconds"):
        _templates(tmp_path, SLOW["slow operation"]).render("en/page.j2", {})
    assert os.times().children_user - began < 4


def test_the_system_s_time_counts_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a loop over large texts the system takes most: it ran for a minute where ten seconds were allowed."""
    monkeypatch.setattr(template_process, "LONGEST_RENDER", 1)
    monkeypatch.setattr(template_process, "_processes", {})
    before = os.times()
    text = '{% set a = "x" * 900000 %}{% for i in range(99999) %}'
    text += "{% set b = " + "~".join(["a"] * 70) + " %}{% endfor %}"
    with pytest.raises(ConfigError, match="takes more than 10 seconds"):
        _templates(tmp_path, text).render("en/page.j2", {})
    after = os.times()
    system = after.children_system - before.children_system
    assert after.children_user - before.children_user + system < 2.5


def test_nothing_of_the_current_folder_is_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a run of somebody else's, a file `json.py` would have been run."""
    for module in ("json", "resource", "jinja2", "h2htalk"):
        (tmp_path / f"{module}.py").write_text("open('was_run', 'w')\n", encoding="utf-8")
    templates = _templates(tmp_path, "{{ name }}")
    monkeypatch.setattr(template_process, "_processes", {})
    monkeypatch.chdir(tmp_path)
    assert templates.render("en/page.j2", {"name": "Nora"}) == "Nora"
    assert not (tmp_path / "was_run").exists()


def test_a_child_that_was_ended_is_followed_by_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = _templates(tmp_path, "{{ name }}: {{ items|join(', ') }}")
    values = {"name": "Nora \ud800", "items": ["a", "b"]}
    assert good.render("en/page.j2", values) == "Nora \ud800: a, b"
    monkeypatch.setattr(template_process, "LONGEST_WAIT", 0.5)
    with pytest.raises(ConfigError):
        _templates(tmp_path, SLOW["loops"]).render("en/page.j2", {})
    monkeypatch.setattr(template_process, "LONGEST_WAIT", 60.0)
    assert good.render("en/page.j2", values) == "Nora \ud800: a, b"


def test_errors_name_file_line_and_values(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"page\.j2:2: 'nme' is undefined; this template may use name"
    ):
        _templates(tmp_path, "\n{{ nme }}").render("en/page.j2", {"name": "Nora"})


def test_what_comes_with_the_package_is_rendered_here(monkeypatch: pytest.MonkeyPatch) -> None:
    from h2htalk.benchmark.prompts.prompt_set import prompt_lines

    monkeypatch.setattr("h2htalk.text.jinja_templates.render_apart", None)
    assert any(
        line.startswith("--- system")
        for line in prompt_lines("mini-en-dialogue-base-06", "mini", "full")
    )
