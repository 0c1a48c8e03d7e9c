"""Models for other programs: search engines, ONNX runtimes, NumPy alone."""
