"""Results for others: entries for a model's page, Every Eval Ever, bundles. Read `export`, then `verify` of bundles."""
