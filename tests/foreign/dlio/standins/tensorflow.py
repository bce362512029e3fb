"""A stand-in for TensorFlow: DLIO imports it for a profiler even where it runs on PyTorch alone."""
