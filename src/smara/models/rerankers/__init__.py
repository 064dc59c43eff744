"""Rerank with Ollama, Cohere's format, or a local ONNX model."""
