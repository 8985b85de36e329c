"""Model files: one learner a file, written atomically, checked before it is believed.

A file is a zip archive of NumPy arrays that are stored, not compressed:

    header      JSON: format, kind, loss and its parameters, options, notes, sparse
    arrays      those of the state, by name; none where nothing is learned
    checksum    SHA-256 over the header and the arrays

An array of which most records are zero has only the others, as ``name`` and ``name.places``, and ``sparse`` says of how
many (:mod:`steelyard.sparsearrays`). What is read takes no more memory than the file; records that are zero take none
until they are used.

What a kernel relies on is checked at loading: names, types, shapes and sizes before anything is allocated, and every
number that is followed to a place in memory. A file of one format loads in every later version.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import stat
import zipfile
from collections.abc import Callable
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from steelyard.bank import Bank
from steelyard.data.files import atomic_write, is_replaced
from steelyard.ftrl import Ftrl
from steelyard.fullmatrix import diagonal_of
from steelyard.kernels import layout
from steelyard.learner import Learner
from steelyard.losses import LOSSES, CustomLoss
from steelyard.mixture import Mixture, MixtureState
from steelyard.online import OnlineLearner
from steelyard.sparsearrays import SparseArray

FORMAT = 5
_KINDS: dict[str, type[OnlineLearner]] = {"Learner": Learner, "Bank": Bank, "Mixture": Mixture}
_MOST_HEADER = 1 << 28  # bytes: notes may hold the names of many classes
_MOST_PARTS = 32  # of a file
_PLACES = ".places"
_START = b"PK\x03\x04"  # of a zip archive
_FIRST = slice(30, 36), b"header"  # where the name of its first part stands

_Parts = dict[str, Any]
"""The arrays of a file by name: whole, or as a :class:`SparseArray`."""


def may_replace(path: str | os.PathLike[str]) -> bool:
    """Whether nothing but a model is lost where a model is written to ``path``: it is none yet, or empty, or one."""
    if not is_replaced(path) or not os.path.getsize(path):
        return True
    with open(path, "rb") as file:
        start = file.read(64)
    return start.startswith(_START) and start[_FIRST[0]] == _FIRST[1]


def save(learner: OnlineLearner, path: str | os.PathLike[str], *, notes: dict[str, Any] | None = None) -> None:
    """Write a learner to a file, whole or not at all. A file that is there, and no model, is not replaced.

    ``notes`` take the place of the learner's own.
    """
    if _KINDS.get(type(learner).__name__) is not type(learner):
        raise TypeError(f"a model file holds a Learner, Bank or Mixture, not a {type(learner).__name__}")
    if not may_replace(path):
        raise ValueError(
            f"{os.fspath(path)} is there, and is no model: it would be lost. Name another file, or remove it first"
        )
    parts: _Parts = learner.parts()
    header = {
        "format": FORMAT,
        "kind": type(learner).__name__,
        "loss": learner.loss.name,
        "loss_parameters": {} if isinstance(learner.loss, CustomLoss) else vars(learner.loss),
        "options": learner._options(),
        "notes": learner.notes if notes is None else notes,
        "sparse": {name: part.rows for name, part in parts.items() if isinstance(part, SparseArray)},
    }
    arrays = {"header": np.array(json.dumps(header, default=_plain))}
    for name, part in parts.items():
        if isinstance(part, SparseArray):
            arrays |= {name: part.records, name + _PLACES: part.places}
        else:
            arrays[name] = part
    digest = hashlib.sha256()
    with atomic_write(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        for name, array in arrays.items():
            _digest(digest, name, array)
            _write(archive, name, array)
        _write(archive, "checksum", np.frombuffer(digest.digest(), np.uint8))


def _plain(value: Any) -> Any:
    """NumPy's numbers and arrays as JSON has them."""
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    raise TypeError(f"a model file holds what JSON can hold, not {type(value).__name__}: {value!r}")


def _digest(digest: Any, name: str, array: NDArray[Any]) -> None:
    digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
    digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)


def _write(archive: zipfile.ZipFile, name: str, array: NDArray[Any]) -> None:
    with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
        np.lib.format.write_array(member, array, allow_pickle=False)


def load(path: str | os.PathLike[str], *, loss: CustomLoss | None = None) -> OnlineLearner:
    """Read a learner. Anything that is not right is refused with a ValueError that names the file."""
    if loss is not None and not isinstance(loss, CustomLoss):
        raise TypeError(f"loss= is for a model of a CustomLoss, and takes that loss, not {loss!r}")
    name = os.fspath(path)
    kind = os.stat(path).st_mode  # before it is opened: a device may never end, and a pipe may never begin
    if not stat.S_ISREG(kind):
        what = "is a folder" if stat.S_ISDIR(kind) else "is a pipe or a device"
        raise ValueError(f"{name} {what}: name a model file")
    with open(path, "rb") as file:
        try:
            return _load(file, loss)
        except (_Refused, MemoryError) as error:
            raise ValueError(f"{name} {error}") from error
        except Exception as error:  # whatever damage does: bad zip, bad JSON, a type, a size, …
            raise ValueError(f"{name} is not a Steelyard model file, or it is damaged") from error


class _Refused(Exception):
    """Why a file is not loaded, in words that go after its name."""


def _require(condition: Any, message: str) -> None:
    if not condition:
        raise _Refused(message)


def _load(file: IO[bytes], loss: CustomLoss | None) -> OnlineLearner:
    with zipfile.ZipFile(file) as archive:
        size = os.fstat(file.fileno()).st_size
        members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
        _require(
            len(members) == len(archive.infolist()) <= _MOST_PARTS, "is damaged: its parts are not those of a model"
        )
        for info in members.values():
            stored = info.compress_type == zipfile.ZIP_STORED and info.file_size == info.compress_size <= size
            _require(stored, "is refused: a part of it is compressed, or larger than the file")
        header = _read_header(archive, members["header"])
        _require(header["format"] <= FORMAT, f"was written by a newer Steelyard (format {header['format']})")
        _require(header["format"] >= 1, f"has the format {header['format']}, which there is not")
        arrays = {n: _read(archive, info) for n, info in members.items() if n not in ("header", "checksum")}
        if header["format"] >= 2:
            _check_sum(archive, members, header["text"], arrays)
        if header["format"] >= 5:
            arrays = _with_sparse(header, arrays)
    _require(
        (header["loss"] == "custom") == (loss is not None),
        f"was learned with the {header['loss']} loss: it {'needs' if loss is None else 'does not need'} loss=",
    )
    chosen = loss if loss is not None else LOSSES[header["loss"]](**header["loss_parameters"])
    if header["format"] == 1:
        arrays = _from_format_1(header, arrays)
    if header["format"] < 3 and header["kind"] == "Mixture":
        arrays = _from_format_2(arrays, chosen.mixing)
    if header["format"] == 3 and header["kind"] == "Mixture":
        arrays = _from_format_3(arrays)
    kind = _KINDS[header["kind"]]
    _check_outputs(kind, header["options"], arrays)
    learner = kind(chosen, **header["options"])
    learner.notes = header["notes"]
    if arrays:
        _set_state(learner, arrays)
    return learner


def _read_header(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> dict[str, Any]:
    _require(info.file_size <= _MOST_HEADER, "is refused: its header is too large")
    text = str(np.lib.format.read_array(io.BytesIO(archive.read(info)), allow_pickle=False))
    header = json.loads(text)
    expected = {"format": int, "kind": str, "loss": str, "loss_parameters": dict, "options": dict, "notes": dict}
    for name, kind in expected.items():
        _require(isinstance(header[name], kind), f"is damaged: {name} in its header is not what it must be")
    return {**header, "text": text}


def _read(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> NDArray[Any]:
    """An array, whose type and size are known to be right before it is read."""
    with archive.open(info) as member:
        version = np.lib.format.read_magic(member)
        reader: Callable[..., Any] = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }[version]
        shape, fortran, dtype = reader(member)
        start = member.tell()
        right = dtype.str in ("<f8", "<f4", "<u8", "<u4", "|u1") and not fortran and all(n >= 0 for n in shape)
        count = math.prod(shape)
        _require(right and start + count * dtype.itemsize == info.file_size, "is damaged: an array is not what it says")
        array = np.empty(count, dtype)
        view, at = array.view(np.uint8).data, 0
        while at < len(view):
            read = member.readinto(view[at : at + (1 << 24)])  # type: ignore[attr-defined]
            _require(read, "is damaged: it is cut off")
            at += read
        _require(not member.read(1), "is damaged: an array is longer than it says")
        return np.asarray(array.reshape(shape))


def _with_sparse(header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> _Parts:
    """The arrays, with records and their places put together."""
    rows = header["sparse"]
    named = isinstance(rows, dict) and {name + _PLACES for name in rows} == {n for n in arrays if n.endswith(_PLACES)}
    _require(named, "is damaged: arrays are missing, or there are too many")
    parts: _Parts = {name: array for name, array in arrays.items() if not name.endswith(_PLACES)}
    for name, count in rows.items():
        _require(type(count) is int and 0 < count < 1 << 48, "is damaged: an array is not what it says")
        parts[name] = SparseArray(count, arrays[name + _PLACES], arrays[name])
        _require(parts[name].fits, "is damaged: its records are not where they can be")
    return parts


def _check_sum(
    archive: zipfile.ZipFile, members: dict[str, zipfile.ZipInfo], text: str, arrays: dict[str, NDArray[Any]]
) -> None:
    digest = hashlib.sha256()
    _digest(digest, "header", np.array(text))
    for name, array in arrays.items():
        _digest(digest, name, array)
    _require(_read(archive, members["checksum"]).tobytes() == digest.digest(), "is damaged: its checksum is another")


# ------------------------------------------------------------------------------------------------ what kernels rely on


def _check_outputs(kind: type[OnlineLearner], options: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
    """The number of outputs sizes many things: the arrays must agree with it before anything is made."""
    outputs = options.get("n_outputs", 1)
    if kind is Bank:
        outputs = len(options["updates"]) * len(options["eta0"])
    _require(isinstance(outputs, int), "is damaged: its number of outputs is no whole number")
    if arrays:
        _require(arrays["sums"].shape[:1] == (outputs,), "is damaged: its arrays do not fit together")


def _set_state(learner: OnlineLearner, parts: _Parts) -> None:
    """Give a learner the arrays of a file, copied to where tables live, if they are what its options need."""
    names = learner._new_state(0)._fields
    _require(set(parts) == set(names), "is damaged: arrays are missing, or there are too many")
    record = learner._record  # type: ignore[attr-defined]
    table = parts["table"]
    fits = table.records.shape[1] == record if isinstance(table, SparseArray) else table.ndim == 1
    _require(fits and table.size % record == 0 and table.size >= record, "is damaged: its arrays do not fit together")
    if isinstance(learner, Ftrl) and learner.certificate and parts["dual"].size:  # a merge has set it apart
        learner._keep_dual()
    if isinstance(learner, Ftrl) and learner.grows and parts["stamps"].size:  # of a version that had them here, too
        learner._keep_stamps()
    state = learner._new_state(table.size // record - 1)
    if isinstance(learner, Mixture) and not parts["second"].size:  # of a version that had no experts of second order
        state = state._replace(second=np.empty(0))
    fits = all(_fits(parts[name], array) for name, array in state._asdict().items())
    _require(fits, "is damaged: its arrays do not fit together")
    for name, part in parts.items():
        if isinstance(part, SparseArray):
            state = state._replace(**{name: part.whole(beside=state.table.nbytes)})
        else:
            getattr(state, name)[...] = part
    stored = table.records if isinstance(table, SparseArray) else table
    last = state.table[-record:]
    if isinstance(learner, Mixture):
        _check_intercept(learner, last[: layout.EXPERTS * learner.n_outputs])
        _check_mixture(learner, state, stored.reshape(-1, record))
    else:
        _check_table(learner, stored.reshape(-1, record), last)
        counts = state.sums[:, [layout.ROWS, layout.NEGATIVE, layout.GUARDED]]
        _require(((counts >= 0.0) & (counts < 2.0**63)).all(), "is damaged: a count is out of range")
        _require((state.clocks[:, layout.WEIGHT] >= 0.0).all(), "is damaged: a weight is negative")
    if "factor" in parts:
        factor = state.factor
        right = np.isfinite(factor).all() and (factor[diagonal_of(table.size // record - 1)] >= 0.0).all()
        _require(right, "is damaged: its matrix is none that a learner can have")
    learner.state = state


def _check_table(learner: Any, records: NDArray[Any], last: NDArray[Any]) -> None:
    """What learning divides by, in the records that are stored, and the intercept, which is the ``last`` of all."""
    diagonal = learner.regularizer.metric == "diagonal"
    if diagonal:
        _require((records[:, 0] >= 0.0).all(), "is damaged: the scale of a column is out of range")
    weights = last[1 : 1 + learner.n_outputs] if diagonal else last
    _check_intercept(learner, weights)


def _check_intercept(learner: OnlineLearner, weights: NDArray[Any]) -> None:
    right = learner.fit_intercept or not weights.any()
    _require(right, "is damaged: it has an intercept, and its options say that it has none")


def _fits(part: Any, array: NDArray[Any]) -> bool:
    """Whether a part of a file is an array like this one."""
    if isinstance(part, SparseArray):
        return part.records.dtype == array.dtype and (part.size,) == array.shape
    return bool(part.shape == array.shape and part.dtype == array.dtype)


def _check_mixture(mixture: Mixture, state: MixtureState, records: NDArray[Any]) -> None:
    """The numbers of a mixture that a kernel follows to a place in memory: counts, offsets and exponents.

    ``records`` are those of the table that are stored: in all others there is nothing but zeros, which are right.
    """
    table, clocks, centered, sums, second = state.table, state.clocks, state.centered, state.sums, state.second
    count = clocks[layout.CENTERED]
    most = centered.size if clocks[layout.MIX_SEEN] > 0.0 else 0  # the first row of all adds its own
    _require(0.0 <= count <= most and count == int(count), "is damaged: a count is out of range")
    offsets = centered[: int(count)]
    width, last = np.uint64(mixture._record), np.uint64(table.size - mixture._record)
    right = (offsets % width == 0).all() and (offsets < last).all() and np.unique(offsets).size == offsets.size
    _require(right, "is damaged: an offset is out of range")
    variance = records[:, mixture._statistics + layout.VARIANCE]
    _require(((variance >= 0.0) & (variance <= layout.MOST_VARIANCE)).all(), "is damaged: a variance is out of range")
    exponent = records[:, mixture._statistics + layout.EXPONENT]
    whole = (np.abs(exponent) <= layout.MOST_EXPONENT).all() and (exponent == np.round(exponent)).all()
    _require(whole, "is damaged: an exponent is out of range")
    seen = np.ascontiguousarray(records).view(np.float64)[:, mixture._statistics // 2 + 1]
    _require((seen >= 0.0).all(), "is damaged: a weight is negative")
    _require(clocks[layout.RESIDENT] in (-1.0, 0.0, 1.0), "is damaged: a clock is out of range")
    shares = sums[:, layout.SHARES :]
    _require(((shares >= 0.0) & (shares <= 1.0 + 1e-9)).all(), "is damaged: a share is out of range")
    matrices = (1.0, 2.0) if second.size else (0.0,)
    _require(clocks[layout.MATRICES] in matrices, "is damaged: its number of matrices is out of range")
    alive = np.isfinite(mixture._evidence_of(sums)[:, layout.EXPERTS :])  # others may have left the floats
    finite = not alive.all() or np.isfinite(second).all()
    _require(finite, "is damaged: a number of its experts of second order is not finite")
    counts = clocks[[layout.MIX_SEEN, layout.MIX_ROWS, layout.LABEL_UNIT, layout.SECOND_SEEN, layout.SHARDS]]
    _require(((counts >= 0.0) & (counts < np.inf)).all(), "is damaged: a clock is out of range")


# ---------------------------------------------------------------------------------------------------- earlier formats


def _from_format_3(arrays: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """The arrays of a mixture that could not be merged: it has one clock less, and one sum before the shares."""
    if not arrays:
        return arrays
    clocks, sums = arrays["clocks"], arrays["sums"]
    right = clocks.shape == (layout.SHARDS,) and sums.ndim == 2 and sums.shape[1] == layout.MIX_SUMS_SIZE - 1
    _require(right, "is damaged: its arrays do not fit together")
    return {**arrays, "clocks": np.append(clocks, 0.0), "sums": np.insert(sums, layout.MERGED, 0.0, axis=1)}


def _from_format_2(arrays: dict[str, NDArray[Any]], mixing: str) -> dict[str, NDArray[Any]]:
    """The arrays of a mixture of eight experts without a certificate, whose shares followed from the evidence."""
    if not arrays:
        return arrays
    _require(set(arrays) == {"table", "clocks", "sums", "centered"}, "is damaged: arrays are missing, or too many")
    old, eight = arrays["sums"], layout.EXPERTS
    right = old.ndim == 2 and old.shape[1] == 3 * eight + 3 and arrays["clocks"].shape == (10,)
    _require(right, "is damaged: its arrays do not fit together")
    sums = np.zeros((len(old), layout.MIX_SUMS_SIZE))
    sums[:, layout.EVIDENCE : layout.EVIDENCE + layout.TOTAL] = np.inf
    sums[:, layout.MIX_FENCHEL] = np.nan
    for start, size, place in (
        (0, eight, layout.EVIDENCE),
        (eight, eight, layout.EXPERT_LOSS),
        (2 * eight, 3, layout.MIXED_LOSS),
        (2 * eight + 3, eight, layout.COUNTED_EXPERT_LOSS),
    ):
        sums[:, place : place + size] = old[:, start : start + size]
    clocks = np.zeros(layout.MIX_CLOCKS_SIZE)
    clocks[:10] = arrays["clocks"]
    clocks[layout.RESIDENT] = -1.0  # as it was
    width = clocks[layout.HIGHEST] - clocks[layout.LOWEST] if mixing == "squared" else 2.0
    rate = 4.0 / (width * width * max(clocks[layout.LARGEST], 1.0)) if width > 0.0 else 0.0
    clocks[layout.MIXING_RATE] = rate
    with np.errstate(all="ignore"):
        shares = np.exp(-rate * (old[:, :eight] - old[:, :eight].min(axis=1, keepdims=True)))
        sums[:, layout.SHARES : layout.SHARES + eight] = np.nan_to_num(shares / shares.sum(axis=1, keepdims=True))
    dual = np.zeros((arrays["centered"].size + 1) * len(old))
    return {**arrays, "sums": sums, "clocks": clocks, "dual": dual, "second": np.empty(0)}


_OLD_CLOCKS = (1, 2, 3, 5, 6)  # weight, lam, sum of squared gradients, scale, norm; after eta0
_OLD_SUMS = (7, 4, 8, 9, 10, 11)  # rows, loss, fenchel, delta, negative, guarded
_OLD_SHARED = 10


def _from_format_1(header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """The arrays of a file of 0.1.0 under today's names: ``scalars`` and ``dual`` held several things each."""
    if not arrays:
        return arrays
    _require(set(arrays) == {"table", "scalars", "dual"}, "is damaged: arrays are missing, or there are too many")
    table, scalars, dual = arrays["table"], arrays["scalars"], arrays["dual"]
    _require(scalars.ndim == 2 and dual.ndim == 1, "is damaged: its arrays do not fit together")
    if header["kind"] == "Mixture":
        members = dual[_OLD_SHARED:]
        _require(
            (members == np.round(members)).all() and (members >= 0.0).all(), "is damaged: an offset is out of range"
        )
        return {
            "table": table,
            "clocks": dual[:_OLD_SHARED],
            "sums": scalars,
            "centered": members.astype(np.uint64),
        }
    _require(scalars.shape[1] == 12, "is damaged: its arrays do not fit together")
    return {"table": table, "clocks": scalars[:, _OLD_CLOCKS], "sums": scalars[:, _OLD_SUMS], "dual": dual}
