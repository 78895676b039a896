"""Show results: a `Summary` in; terminal, CSV, JSON, LaTeX, HTML, the leaderboard out. Read `table2`, `terminal`."""
