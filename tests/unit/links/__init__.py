"""Tests of the room where others meet."""
