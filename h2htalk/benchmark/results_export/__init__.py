"""Results for others: entries for a model's page, Every Eval Ever, bundles that can be verified. Read `export`."""
