"""Exports of programs that talk with a model: messages as JSON, often a tree of which one branch is shown."""
