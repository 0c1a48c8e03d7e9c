"""Models in other programs: search engines, ONNX runtimes, NumPy alone."""
