"""Answer requests in this process: the engines `embedded` (OpenVINO) and `hf` (transformers).

In: requests. Out: a reply or a failure for each. Read `hf` first; `embedded` is the small model of the demo.
`chat_template` turns messages into tokens, also for `vllm`.
"""
