"""The parts of tools/reference_folder.py: what it makes, and how two such folders are compared."""
