"""Reserve, settle and report what paid calls cost; `ledger` writes costs/STAGE.jsonl, `cost_log` reads it."""
