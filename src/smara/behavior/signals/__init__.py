"""Detect habits in sessions, one signal a file.

Every module has ``SIGNAL`` (its specification), ``detect(pad, pads)`` (the findings in the
scratchpad of an agent, with those of its session) and ``draft(finding, seen)`` (the memory,
composed from the evidence, or ``None`` when it would say too little). The registry finds the
modules of this folder by itself.
"""
