"""Assign items to annotators, the same for every order of rows, and count the annotators that items still need."""
