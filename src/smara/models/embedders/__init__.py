"""Embedders: the offline one that comes with every installation, a local ONNX model, and
servers.
"""
