"""The figures of an analysis: what they show (`charts`), and what all look like (`style`, `figures.mplstyle`)."""
