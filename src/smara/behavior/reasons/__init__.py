"""Reasons in the messages of commits: one reader for commits seen being made and for those of a
history.

``text`` reads a message as sentences, ``cues`` holds the words by which a reason is known,
``reading`` says what a commit decided or warns of, ``reverts`` what was tried and taken back.
"""
