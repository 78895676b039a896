"""What the Argilla platform (`platform`) says to a server: people, datasets, records, the page, answers."""
