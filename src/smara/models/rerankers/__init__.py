"""Rerankers: a model under Ollama, Cohere and what speaks its format, a local ONNX model."""
