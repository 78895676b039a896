"""OpenAI and Anthropic by their SDKs: requests in, outcomes out. Read `hosted_chat`, then `chat/live_calls`."""
