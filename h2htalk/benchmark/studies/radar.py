"""Fig. 7 for several models: one radar of their studies of instruction following."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from h2htalk.benchmark.studies.charts import radar
from h2htalk.benchmark.studies.run_study import load_study
from h2htalk.benchmark.studies.study_tables import radar_axes
from h2htalk.chat.model_identity import model_name
from h2htalk.data.files import write_output
from h2htalk.errors import ConfigError


def write_radar(studies: Sequence[Path], out: Path) -> str:
    """Write the radar of studies as SVG; return what was written."""
    found = [load_study(path) for path in studies]
    for one in found:
        if one.study.spec.study != "instructions":
            raise ConfigError(f"{one.study.path}: is a study of {one.study.spec.study}; a radar is of instructions")
        if keys := one.study.signature.differing(found[0].study.signature):
            raise ConfigError(
                f"{one.study.path} and {found[0].study.path} cannot be compared: {', '.join(keys)} differ"
            )
        if one.judge != found[0].judge:
            raise ConfigError(f"{one.study.path} and {found[0].study.path}: two judges, {one.judge}, {found[0].judge}")
    series = [(model_name(one.study.spec.ask.model), radar_axes(one.observations)) for one in found]
    write_output(out, radar(series, "Points met by kind of case (Fig. 7), percent"), "<svg")
    return f"{out}: {', '.join(name for name, _ in series)}"
