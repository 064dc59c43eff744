"""Tests of what a model is sent."""
