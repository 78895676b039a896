"""Measure what a split consists of and draw it (paper, section 3.3).

In: one split, or two to compare. Out: an `Analysis`, and its folder with tables, figures and a page. Read `analyze`
first, then `report.write_analysis`.
"""
