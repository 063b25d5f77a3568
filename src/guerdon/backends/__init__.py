"""The outside world behind small protocols: sandboxes, language models, embedders, stores, executors."""
