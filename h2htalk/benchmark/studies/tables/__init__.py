"""The tables and charts of studies.

In: observations. Out: tables for the terminal, CSV, Markdown and the page; SVG. Read `study_table` first, then the
tables of a study.
"""
