"""Benchmarks: each module has ``main()``, prints ratios against a peer or a plain baseline measured in the same run."""
