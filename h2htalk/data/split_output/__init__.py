"""What is written about splits: their files, a description, and JSON Schemas of their items.

In: a `Split`. Out: a folder that `load_split` reads again, text for the terminal, JSON Schemas. Begin with `export`.
"""
