"""Release: what people kept becomes a dataset on the Hub.

A specification (`settings`) names a workspace and its closed rounds. `selection` takes the items that people kept,
fills the quotas and divides the splits, `gates` stop what must not be published, `build` writes the folder and checks
one, `card` describes it, `content` reads it back and compares two. Read `build` first.
"""
