"""The one store of model calls, none of which is paid twice. Read `call_store`, then `model_calls`, which asks."""
