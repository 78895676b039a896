"""A static site of runs and studies, which opens from a disk, from any static host and from a Space.

In: folders of scored runs, of studies and of curations. Out: a folder of HTML, SVG and data in which nothing is fetched
from elsewhere. Read `build` first: it names the pages. `sources` opens what is shown, `context` has what all pages
share, `boards` ranks it, `charts` draws it, `pages` writes boards and models, `items` packs the texts for the item
browser, and `leaks` stops what must not be published.
On the terminal, `runs` lists what lies below a folder.
"""
