"""A static site of runs and studies, which opens from a disk, from any static host and from a Space.

In: folders of scored runs, studies, curations and releases. Out: a folder of HTML, SVG and data in which nothing is
fetched from elsewhere. Read `build` first: it names the pages. `sources` opens what is shown, `context` has what all
pages share, `boards` ranks runs, `studies` joins studies over models, `pages` writes the index (`board_view`,
`board_charts`) and the page of each run (`model_page`), `items` writes the item browser, whose data `item_chunks` and
`answer_chunks` pack, and `leaks` stops what must not be published (`leak_forms.toml`).
On the terminal, `runs` lists what lies below a folder.
"""
