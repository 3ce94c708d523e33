"""Labels that are not 0 are found, whatever their type and however many."""

from __future__ import annotations

import numpy as np
import pytest

from deadheat.ties.lists import find_nonzero


@pytest.mark.parametrize("share", [0, 0.01, 0.5, 1])
@pytest.mark.parametrize(
    "dtype", [bool, np.int8, np.uint8, np.int16, np.int32, np.int64, np.uint64, np.float32, ">i4"]
)
def test_labels_that_are_not_0_are_found(dtype, share):
    rng = np.random.default_rng(7)
    for length in (0, 1, 7, 8, 64, 200, 1_000):
        here = rng.random(length) < share
        given = np.where(here, rng.choice([-3, 1, 100], length), 0).astype(dtype)
        np.testing.assert_array_equal(find_nonzero(given), np.flatnonzero(here))
        apart = np.repeat(given, 2)[::2]  # not one after the other in memory
        np.testing.assert_array_equal(find_nonzero(apart), np.flatnonzero(here))


def test_the_sign_bit_alone_is_a_label_and_minus_0_is_none():
    lowest = np.array([0, -(2**63)], np.int64)
    assert find_nonzero(lowest).tolist() == [1]
    assert find_nonzero(np.array([-0.0, 1.0])).tolist() == [1]
