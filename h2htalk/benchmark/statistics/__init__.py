"""Average item scores to the cells, rows and overall of Table 2, with 95 % intervals.

In: `ItemValue`s. Out: `Row` and `Cell`. Everything is in `table2_averages`.
"""
