"""Embed texts offline, with a local ONNX model, or by servers."""
