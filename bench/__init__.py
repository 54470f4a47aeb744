"""Benchmarks: `make bench`. Ratios are taken within one run; a noisy machine moves both sides."""
