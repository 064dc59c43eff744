"""Detect habits in sessions, one signal a file.

Every module has ``SIGNAL`` (its specification), ``detect(pads)`` (the findings in the scratchpads
of one session) and ``draft(finding, seen)`` (the memory, composed from the evidence, or ``None``
when it would say too little). The registry finds the modules of this folder by itself.
"""
