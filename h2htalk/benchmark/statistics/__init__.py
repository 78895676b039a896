"""Average item scores to the cells, rows and overall of Table 2, with intervals."""
