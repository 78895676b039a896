"""Write the folder of an analysis.

In: an `Analysis`. Out: `tables/*.csv`, figures, `index.html` and `summary.json`. Read `write_analysis` first, then
`figure_specs`, which lists the figures, and `analysis_page`. `overview` is what the terminal shows.
"""
