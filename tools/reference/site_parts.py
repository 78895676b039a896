"""Parts of a reference folder: sites in both languages, and commands that look at whole folders."""

from __future__ import annotations

from reference.workplace import Part, Workplace

RUNS = ("runs/ada", "runs/bo", "runs/cai", "runs/plain", "runs/reference")
STUDIES = ("studies/sap", "studies/sap-other", "studies/instructions", "studies/memory")
SHOWN = "mini-en-itinerary-basic-01"


def make_sites(work: Workplace) -> None:
    """A site in each language, and the transcript of one item."""
    for language in ("en", "zh"):
        words = ("--language", language, "--title", "Reference", "--leave-out", SHOWN)
        work.h2htalk("site", *RUNS, *STUDIES, *words, "--out", f"sites/{language}")
    work.h2htalk("site", "runs/ada", "--share", SHOWN, "--out", "sites/item.html")


def make_overview(work: Workplace) -> None:
    """Lists of everything in the folder, what is due next, records, and progress."""
    for name in ("terminal", "csv", "json"):
        work.h2htalk("runs", ".", "--format", name)
    work.h2htalk("next", ".")
    for name in ("runs/ada", "studies/sap"):
        work.h2htalk("show", name, "--limit", 2)
        work.h2htalk("costs", name)
        work.h2htalk("watch", name)
    work.h2htalk("show", "runs/ada", SHOWN)
    work.h2htalk("show", "mini@1", "--tag", "grief", "--ids")
    work.h2htalk("prompts", "show", SHOWN)
    work.h2htalk("split", "info", "mini@1")


PARTS = (
    Part("sites", make_sites, needs=("people", "judgements")),
    Part("overview", make_overview, needs=("people", "judgements")),
)
