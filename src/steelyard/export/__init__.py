"""Ways out: a fitted model as scikit-learn's classes, as an ONNX graph, as JSON, as Vowpal Wabbit's readable text."""
