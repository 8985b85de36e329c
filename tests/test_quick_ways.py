"""What is done in a quicker way for usual input gives the same as the slow way: names, order, blocks, memory."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.utils import murmurhash3_32

from steelyard.data.files import read_blocks
from steelyard.data.hashing import Interactions, Settler
from steelyard.data.memory import Recycled
from steelyard.data.vw import VwFormat

NOTHING = Interactions().meetings({}, 1)


def settled_slowly(hashes, values, bits):
    """A row as a dictionary adds it up, in the order in which its features come."""
    row = {}
    for index, value in zip((hashes & ((1 << bits) - 1)).tolist(), values.tolist(), strict=True):
        if value != 0.0:
            row[index] = row[index] + value if index in row else value
    return sorted(row.items())


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([1, 3, 8, 18, 27, 28, 30]), st.lists(st.integers(0, 40), max_size=30))
def test_rows_of_any_length_are_put_in_order(seed, bits, sizes):
    rng = np.random.default_rng(seed)
    starts = np.append(0, np.cumsum(np.array(sizes, np.int64))).astype(np.int64)
    hashes = rng.integers(0, 2**32, starts[-1], dtype=np.uint32)
    values = rng.choice([0.0, 1.0, -0.5, 2.25], starts[-1], p=[0.01, 0.6, 0.2, 0.19])
    found = Settler().settle(hashes, values, np.zeros(hashes.size, np.uint16), starts, bits, NOTHING)
    for row in range(len(sizes)):
        was, now = slice(*starts[row : row + 2]), slice(*found.indptr[row : row + 2])
        got = list(zip(found.indices[now].tolist(), found.values[now].tolist(), strict=True))
        assert got == settled_slowly(hashes[was], values[was], bits)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.text("abcXYZ0123_-é", min_size=1, max_size=20), min_size=1, max_size=20),
    st.sampled_from(["", "a", "long"]),
    st.booleans(),
)
def test_names_of_any_length_have_the_hash_of_murmur(names, space, hash_all):
    form = VwFormat(bits=30, hash_all=hash_all)
    part = form.parse(f"-1 |{space} {' '.join(names)}\n".encode(), form.new_room())
    seed = murmurhash3_32(space.encode(), 0, positive=True) if space else 0

    def index(name):
        number = name.isascii() and name.isdecimal() and not hash_all
        return (int(name) + seed if number else murmurhash3_32(name.encode(), seed, positive=True)) & (2**30 - 1)

    assert part.y.tolist() == [-1.0]
    assert part.indices.tolist() == sorted({index(name) for name in names})


@pytest.mark.parametrize("label", ["1", "-1", "0", "-0", "7", "12", "1.5", "+1", "-1e0"])
@pytest.mark.parametrize("rest", [" |a b", " |a b c d e f g h", "  |a b", " 2 |a b", " 'tag |a b c d"])
def test_labels_of_one_digit_are_like_others(label, rest):
    form = VwFormat()
    part = form.parse(f"{label}{rest}\n".encode(), form.new_room())
    assert part.y.tobytes() == np.array([float(label)]).tobytes()
    assert (part.weight.tolist() or [1.0]) == [2.0 if rest.startswith(" 2") else 1.0]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 9000), max_size=40), st.integers(1, 20_000), st.booleans(), st.integers(0, 3))
def test_blocks_of_plain_files_are_whole_lines(tmp_path_factory, sizes, size, ends, start):
    content = b"".join(b"x" * each + b"\n" for each in sizes) + (b"" if ends else b"last")
    path = tmp_path_factory.mktemp("blocks") / "lines"
    path.write_bytes(content)
    blocks = list(read_blocks(path, size, min(start, len(content))))
    assert b"".join(blocks) == content[min(start, len(content)) :]
    assert all(block.endswith(b"\n") for block in blocks[:-1])


def test_memory_is_used_again_only_when_nobody_has_it():
    memory, rng, kept = Recycled(), np.random.default_rng(0), []
    for number in range(300):
        (array,) = memory.take([(int(rng.integers(1, 2000)), np.float64)])
        array[:] = number
        kept.append((number, array[::2]))
        if rng.random() < 0.7:
            kept.pop(int(rng.integers(len(kept))))
        del array
        assert all((view == value).all() for value, view in kept)
    assert len(memory._blocks) <= 16
