"""Export of models to other programs: search engines, ONNX runtimes, NumPy."""
