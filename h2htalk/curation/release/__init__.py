"""Release: what people kept becomes a dataset on the Hub.

A specification (`settings`) names a workspace and its closed rounds. `acceptance` decides which items people kept,
`selection` fills the quotas and divides the splits, `gates` stop what must not be published, `build` writes the folder,
`card` and `croissant` describe it, `content` reads it back and compares two. Read `build` first.
"""
