"""Assign items to annotators, and count the annotators that items still need. Read `assignments` first."""
