"""The core: what a change is, which rules accept it, and the bytes of its messages.

Everything here is a pure function of its arguments: no clock, no randomness, no I/O. The gateway and
the pipeline both call it, which is why one change gives the same bytes wherever it is composed.
"""
