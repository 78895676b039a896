"""A table's five forms: no figure lost, columns aligned, nothing that others wrote acts."""

from __future__ import annotations

import pytest
from markupsafe import Markup

from h2htalk.text.tables import Table, Value, value_text

TABLE = Table(
    "By arm",
    ("arm", "change", "items", "by"),
    (("<b>模型", "-5.9 (-9.6 to -2.4), p .001", 1200, "judge"), ("=1+1|\x1b[31m", None, 7, None)),
    ("100 % & more.",),
    "arms",
)
FORMS = {
    "to_terminal": """By arm
arm                                 change  items  by
<b>模型        -5.9 (-9.6 to -2.4), p .001  1,200  judge
=1+1|\\x1b[31m                            -      7  -
100 % & more.""",
    "to_csv": """arm,change,items,by
<b>模型,"-5.9 (-9.6 to -2.4), p .001",1200,judge
'=1+1|\\x1b[31m,,7,
""",
    "to_markdown": """### By arm

| arm | change | items | by |
| --- | ---: | ---: | --- |
| &lt;b&gt;模型 | -5.9 (-9.6 to -2.4), p .001 | 1,200 | judge |
| \\=1+1\\|\\\\x1b\\[31m | - | 7 | - |

* 100 % &amp; more.
""",
    "to_latex": r"""% needs \usepackage{booktabs,graphicx}
\begin{table}[t]
\centering
\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%
\begin{tabular}{lrrl}
\toprule
arm & change & items & by \\
\midrule
\textless{}b\textgreater{}模型 & $-$5.9 ($-$9.6 to $-$2.4), p .001 & 1,200 & judge \\
=1+1\textbar{}\textbackslash{}x1b{[}31m & -- & 7 & -- \\
\bottomrule
\end{tabular}}
\caption{By arm. 100 \% \& more.}
\end{table}
""",
    "to_html": """<div class="wide"><table>
<thead><tr><th scope="col">arm</th><th scope="col" class="num">change</th><th scope="col" class="num">items</th>\
<th scope="col">by</th></tr></thead>
<tbody>
<tr><th scope="row"><bdi>&lt;b&gt;模型</bdi></th><td class="num">-5.9 (-9.6 to -2.4), p .001</td>\
<td class="num">1,200</td><td>judge</td></tr>
<tr><th scope="row"><bdi>=1+1|\\x1b[31m</bdi></th><td class="num">-</td><td class="num">7</td><td>-</td></tr>
</tbody></table></div>
<ul class="notes"><li>100 % &amp; more.</li></ul>""",
}


@pytest.mark.parametrize("form", FORMS)
def test_each_form_holds_every_value_aligned_and_escaped(form: str) -> None:
    assert str(getattr(TABLE, form)()) == FORMS[form]


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("-5.9 (-9.6 to -2.4)", "-5.9 (-9.6 to -2.4)"),
        ("-", "-"),
        ("-1+HYPERLINK(A1)", "'-1+HYPERLINK(A1)"),
        ("-2+3+cmd|' /C calc'!A0", "'-2+3+cmd|' /C calc'!A0"),
    ],
)
def test_a_figure_keeps_its_sign_in_csv_and_a_formula_acts_nowhere(text: str, cell: str) -> None:
    """Differences in a study's tables came as they are, and so did a formula in any column but the first."""
    assert Table("", ["x"], [[text]]).to_csv() == f"x\n{cell}\n"


@pytest.mark.parametrize(("values", "right"), [((1, 2), True), (("4o-mini", "5"), False)])
def test_the_first_column_is_of_names_unless_all_its_values_are_numbers(values: tuple[int], right: bool) -> None:
    assert Table("", ("x",), tuple((value,) for value in values)).figures() == [right]


@pytest.mark.parametrize(
    ("value", "shown"), [(None, "-"), (-1e-17, "0.000"), (True, "yes"), (1234, "1,234"), (0.12345, "0.123")]
)
def test_values_are_short(value: Value, shown: str) -> None:
    assert value_text(value) == shown


def test_blocks_broken_headings_and_markup() -> None:
    table = Table("", ("name", "two\nlines"), [("r", 1), (), ("s", 22)])
    assert table.to_terminal(1) == "       two\nname lines\nr        1\n\ns       22"
    assert table.to_latex().count("\\midrule") == 2
    assert table.to_csv().splitlines()[1:] == ["r,1", "s,22"]
    page = Table("", ("n", Markup("<b>x</b>")), [("<r>", Markup("<i>1</i>"))]).to_html()
    assert '<th scope="col" class="num"><b>x</b></th>' in page
    assert '<bdi>&lt;r&gt;</bdi></th><td class="num"><i>1</i></td>' in page
