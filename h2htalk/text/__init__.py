"""Language tools that several rooms need: tokens, contracts, embeddings."""
