"""Show a scored study: tables for the terminal and as files, charts, and a page with the replies to read first.

Observations and answered replies come in; `tables/`, `figures/`, `report.html` and the sealed summary go out. Read
`study_result.py` first, then `study_tables.py`, which makes a table of groups of observations, and one of the files of
tables by study. `raters_tables.py` says who answered, and `study_page.py` writes the files.
"""
