"""Benchmarks: ratios to a bare baseline, measured in the same run.

Machines are noisy, so nothing here is a promise in seconds. Ours and the baseline take
turns on the same data, and what is reported is how many times one is the other, and how
each grows from 10,000 to 1,000,000 messages.
"""
