"""Reserve, settle and report what paid calls cost.

In: calls and a price file. Out: `costs/STAGE.jsonl`, which `ledger` writes and `cost_log` reads. Read `ledger` first,
then `prices`.
"""
