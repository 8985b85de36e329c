"""A linear model → an ONNX graph of a dozen plain operators, in double precision between float32 ends."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard import __version__
from steelyard.export.linear import LinearModel

_OPSET, _IR = 17, 8  # of 2022: what older runtimes know, too
_GATHERED = 0.5  # if fewer of the columns than this count, only those are taken from the input


class _Graph:
    """Nodes and constants, as they come."""

    def __init__(self, helper: Any, numpy_helper: Any) -> None:
        self._helper, self._numpy = helper, numpy_helper
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, name: str, values: Any) -> str:
        """An array that belongs to the model."""
        array = np.asarray(values)
        if array.dtype.kind in "UO":
            texts = [str(each).encode() for each in array.ravel()]
            made = self._helper.make_tensor(name, _types()["text"], array.shape, texts)
        else:
            made = self._numpy.from_array(np.ascontiguousarray(array), name)
        self.constants.append(made)
        return name

    def add(self, operator: str, inputs: list[str], output: str, **attributes: Any) -> str:
        """One operator, and the name of what comes out of it."""
        self.nodes.append(self._helper.make_node(operator, inputs, [output], **attributes))
        return output


def _types() -> dict[str, int]:
    from onnx import TensorProto

    kinds = {"float": TensorProto.FLOAT, "double": TensorProto.DOUBLE, "text": TensorProto.STRING}
    return kinds | {"b": TensorProto.BOOL, "i": TensorProto.INT64, "u": TensorProto.UINT64}


def to_onnx(model: LinearModel) -> Any:
    """The ``onnx.ModelProto``; see :meth:`OnlineClassifier.to_onnx`."""
    try:
        import onnx
        from onnx import checker, helper, numpy_helper
    except ImportError:
        raise ImportError("to_onnx() needs the package onnx: pip install 'steelyard[onnx]'") from None
    types = _types()
    graph = _Graph(helper, numpy_helper)
    scores = _scores(graph, model, types)
    info = helper.make_tensor_value_info
    inputs = [info("X", types["float"], [None, model.n_features])]
    if model.classes is None:
        _regression(graph, model, scores, types)
        outputs = [info("variable", types["float"], [None, 1])]
    else:
        classes = _onnx_classes(model.classes)
        name = _classification(graph, model, scores, classes, types)
        kind = types["text"] if classes.dtype.kind == "O" else types.get(classes.dtype.kind, types["double"])
        width = 1 if name == "scores" and classes.size == 2 else classes.size
        outputs = [info("label", kind, [None]), info(name, types["float"], [None, width])]
    made = helper.make_model(
        helper.make_graph(graph.nodes, "steelyard", inputs, outputs, graph.constants),
        producer_name="steelyard",
        producer_version=__version__,
        opset_imports=[helper.make_opsetid("", _OPSET)],
        ir_version=_IR,
    )
    if model.names is not None:
        helper.set_model_props(made, {"feature_names": json.dumps([str(name) for name in model.names])})
    checker.check_model(made)
    found: onnx.ModelProto = made
    return found


def _scores(graph: _Graph, model: LinearModel, types: dict[str, int]) -> str:
    """``X @ coef.T + intercept`` within its range, (rows, outputs), in double precision."""
    used = np.flatnonzero((model.coef != 0.0).any(axis=0))
    values, coef = "X", model.coef
    if used.size < _GATHERED * model.n_features:
        values = graph.add("Gather", [values, graph.constant("columns", used.astype(np.int64))], "used", axis=1)
        coef = coef[:, used]
    double = graph.add("Cast", [values], "double", to=types["double"])
    product = graph.add("MatMul", [double, graph.constant("coef", coef.T)], "product")
    scores = graph.add("Add", [product, graph.constant("intercept", model.intercept)], "sum")
    if model.range is None:
        return scores
    low, high = (np.float64(each) for each in model.range)
    return graph.add("Clip", [scores, graph.constant("lowest", low), graph.constant("highest", high)], "within")


def _regression(graph: _Graph, model: LinearModel, scores: str, types: dict[str, int]) -> None:
    if model.loss.link == "exp":
        scores = graph.add("Exp", [scores], "mean")
    graph.add("Cast", [scores], "variable", to=types["float"])


def _onnx_classes(classes: NDArray[Any]) -> NDArray[Any]:
    """The classes as a tensor holds them: text, truth values, whole numbers of 64 bits, signed if all fit, doubles."""
    if classes.dtype.kind in "OUT":
        texts = all(isinstance(label, str) for label in classes.tolist())
        if not texts:
            raise ValueError(f"classes of mixed kinds have no place in ONNX: {classes.tolist()}")
        return classes.astype(object)
    if classes.dtype.kind not in "biuf":
        raise ValueError(f"ONNX has classes that are text, numbers or truth values, and not {classes[0]!r}")
    if classes.dtype.kind in "iu":
        return classes.astype(np.int64 if classes.max() <= np.iinfo(np.int64).max else np.uint64)
    return classes if classes.dtype.kind == "b" else classes.astype(np.float64)


def _classification(
    graph: _Graph, model: LinearModel, scores: str, classes: NDArray[Any], types: dict[str, int]
) -> str:
    """Labels, and beside them probabilities or scores: whichever there are, by their name."""
    threshold = model.loss.threshold
    if classes.size == 2:
        above = graph.add("Greater", [scores, graph.constant("threshold", np.float64(threshold))], "above")
        whole = graph.add("Cast", [above], "place", to=types["i"])
        flat = graph.constant("flat", np.array([-1], np.int64))
        place = graph.add("Reshape", [whole, flat], "places")
    else:
        place = graph.add("ArgMax", [scores], "places", axis=1, keepdims=0)
    graph.add("Gather", [graph.constant("classes", classes), place], "label", axis=0)
    if model.loss.link is None:
        if threshold:
            scores = graph.add("Sub", [scores, graph.constant("least", np.float64(threshold))], "distance")
        graph.add("Cast", [scores], "scores", to=types["float"])
        return "scores"
    graph.add("Cast", [_probabilities(graph, model, scores, classes.size)], "probabilities", to=types["float"])
    return "probabilities"


def _probabilities(graph: _Graph, model: LinearModel, scores: str, count: int) -> str:
    one = graph.constant("one", np.float64(1.0))
    zero = graph.constant("zero", np.float64(0.0)) if count > 2 or model.loss.link != "logistic" else ""
    if model.loss.link == "logistic":
        own = graph.add("Sigmoid", [scores], "own")
    else:
        own = graph.add("Clip", [scores, zero, one], "own")
    if count == 2:
        return graph.add("Concat", [graph.add("Sub", [one, own], "other"), own], "both", axis=1)
    axes = graph.constant("axes", np.array([1], np.int64))
    total = graph.add("ReduceSum", [own, axes], "total", keepdims=1)
    some = graph.add("Greater", [total, zero], "some")
    shares = graph.add("Div", [own, graph.add("Where", [some, total, one], "divisor")], "shares")
    even = graph.constant("even", np.full((1, count), 1.0 / count))
    return graph.add("Where", [some, shares, even], "each")
