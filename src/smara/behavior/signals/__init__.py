"""Detect habits in sessions, one signal a file.

Every module has ``SIGNAL`` (its specification), ``detect(pad, pads)`` (the findings in the
scratchpad of an agent, with those of its session) and ``draft(finding, seen)`` (the memory,
composed from the evidence, or ``None`` when it would say too little). It may have
``is_repeated(data, memories)``, where one memory can say what another does in other words. The
registry finds the modules of this folder by itself.
"""
