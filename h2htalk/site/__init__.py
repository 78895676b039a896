"""A static site of runs and studies, which opens from a disk, from any static host and from a Space.

In: folders of scored runs, studies, curations and releases. Out: a folder of HTML, SVG and data in which nothing is
fetched from elsewhere. Read `build` first: it names the pages. `sources` opens what is shown, `context` has what all
pages share, `boards` ranks runs, `studies` joins studies over models, `pages` writes the index and models, `items`
packs the texts for the item browser, and `leaks` stops what must not be published.
On the terminal, `runs` lists what lies below a folder.
"""
