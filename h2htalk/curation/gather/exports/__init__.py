"""Exports of chat programs: a module a program, and one set of rules by which their chats become dialogues.

The programs stand in `assistants` (people talk with a model), `messengers`, `logs` (lines) and `tables` (rows).
`messages` is the record that all readers give, `dialogues` the common rules (who is the companion, groups, silences,
what is left out), `programs` the table of programs.
"""
