"""Compare scored runs and logs of other harnesses item by item: a `Comparison`, tables, a page. Read `comparison`."""
