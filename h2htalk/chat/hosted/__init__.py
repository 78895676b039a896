"""Answer requests live through the OpenAI and Anthropic SDKs; `live_calls` is the loop, `http_attempt` one attempt."""
