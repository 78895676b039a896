"""The one store of model calls, none of which is paid twice. Read `call_store`, `stage_calls`, then `model_calls`."""
