# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Counting and grouping, compiled. `numpy_counting.py` is the definition and the NumPy twin."""

import numpy as np

from libc.stdint cimport int16_t, int64_t

cdef extern from *:
    """
    /* One source; wide vectors where the machine has them, chosen when the library is loaded. Those
       of AVX-512 compare into masks, which takes longer than it saves. */
    #if defined(__GNUC__) && !defined(__clang__)
    #define DEADHEAT_UNROLLED _Pragma("GCC unroll 4")
    #else
    #define DEADHEAT_UNROLLED
    #endif
    #if defined(__x86_64__) && defined(__linux__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
    #define DEADHEAT_WIDE __attribute__((target_clones("avx2", "default")))
    #else
    #define DEADHEAT_WIDE
    #endif
    /* What is compared: a float itself, or the whole number that the bits of 16 stand for. */
    #define DEADHEAT_SAME(score) (score)
    static inline int16_t DEADHEAT_SIGNED(int16_t bits) {
        int16_t sign = (int16_t)(bits >> 15);
        return (int16_t)(((bits & 0x7fff) ^ sign) - sign);
    }
    #define DEADHEAT_TALLY(real, narrow, most, key)                                         \
    DEADHEAT_WIDE static void tally_##real(const real *s, int64_t n, real value,            \
                                           int64_t *above, int64_t *equal) {                \
        while (n > 0) {                                                                     \
            int64_t block = n < (most) ? n : (most);                                        \
            narrow a = 0, e = 0;                                                            \
            DEADHEAT_UNROLLED                                                               \
            for (int64_t i = 0; i < block; i++) {                                           \
                const real one = key(s[i]);                                                 \
                a += one > value; e += one == value;                                        \
            }                                                                               \
            *above += a; *equal += e;                                                       \
            s += block; n -= block;                                                         \
        }                                                                                   \
    }
    DEADHEAT_TALLY(float, int32_t, 1 << 20, DEADHEAT_SAME)
    DEADHEAT_TALLY(double, int64_t, 1 << 20, DEADHEAT_SAME)
    DEADHEAT_TALLY(int16_t, int16_t, 1 << 14, DEADHEAT_SIGNED)
    """
    void tally_float(const float *, int64_t, float, int64_t *, int64_t *) noexcept nogil
    void tally_double(const double *, int64_t, double, int64_t *, int64_t *) noexcept nogil
    void tally_int16_t(const int16_t *, int64_t, int16_t, int64_t *, int64_t *) noexcept nogil
    int16_t DEADHEAT_SIGNED(int16_t) noexcept nogil

ctypedef fused real:
    float
    double
    int16_t

# Up to so many distinct values a vectorised pass for each beats one pass with a binary search.
cdef enum:
    FEW = 48


cdef inline void tally(const real *s, int64_t n, real value,
                       int64_t *above, int64_t *equal) noexcept nogil:
    if real is float:
        tally_float(s, n, value, above, equal)
    elif real is double:
        tally_double(s, n, value, above, equal)
    else:
        tally_int16_t(s, n, value, above, equal)


cdef inline real key(real score) noexcept nogil:
    if real is int16_t:
        return DEADHEAT_SIGNED(score)
    else:
        return score


cdef inline int64_t clip(int64_t x, int64_t low, int64_t high) noexcept nogil:
    return low if x < low else high if x > high else x


cdef _check_inside(Py_ssize_t n_scores, const int64_t[::1] starts, const int64_t[::1] stops,
                   const int64_t[::1] offsets, Py_ssize_t n_documents, Py_ssize_t n_rows):
    """Refuse an index outside of its array: nothing is checked in the loops."""
    cdef Py_ssize_t q, n_queries = offsets.shape[0] - 1
    cdef int64_t previous = 0
    cdef bint inside = (n_queries >= 0 and starts.shape[0] >= n_queries
                        and stops.shape[0] >= n_queries and n_rows == n_documents)
    if inside:
        for q in range(n_queries + 1):
            inside = inside and previous <= offsets[q] <= n_documents
            previous = offsets[q]
        for q in range(n_queries):
            inside = inside and 0 <= starts[q] <= stops[q] <= n_scores
    if not inside:
        raise IndexError("starts, stops, offsets and rows must lie inside the arrays they index")


def count_candidates(const real[::1] scores, const int64_t[::1] starts, const int64_t[::1] stops,
          const int64_t[::1] offsets, const real[::1] values, const int64_t[::1] rows):
    """See `deadheat.ties.numpy_counting.count_candidates`."""
    cdef Py_ssize_t n_queries = offsets.shape[0] - 1
    cdef Py_ssize_t n_documents = values.shape[0]
    _check_inside(scores.shape[0], starts, stops, offsets, n_documents, rows.shape[0])
    # Three rows of counts, and four of scratch.
    out = np.zeros((7, n_documents), np.int64)
    cdef int64_t[:, ::1] counts = out
    if n_documents == 0 or scores.shape[0] == 0:
        return out[:3]
    cdef int64_t *above = &counts[0, 0]
    cdef int64_t *equal = &counts[1, 0]
    cdef int64_t *before = &counts[2, 0]
    # Scratch: the distinct values of a query, which are of 64 bits at most, and its documents at each.
    cdef real *distinct = <real *> &counts[3, 0]
    cdef int64_t *waiting = &counts[4, 0]
    cdef int64_t *end = &counts[5, 0]
    cdef int64_t *passed = &counts[6, 0]
    cdef Py_ssize_t q, first, last, i, j, d, n_distinct
    cdef int64_t start, stop, position, row, low, high, middle, greater, ties
    cdef real score
    with nogil:
        for q in range(n_queries):
            first = offsets[q]
            last = offsets[q + 1]
            if first == last:
                continue
            start = starts[q]
            stop = stops[q]
            n_distinct = 0
            for i in range(first, last):
                if i == first or key(values[i]) != key(values[i - 1]):
                    distinct[n_distinct] = key(values[i])
                    waiting[n_distinct] = i
                    n_distinct += 1
                end[n_distinct - 1] = i + 1

            if n_distinct <= FEW:
                for d in range(n_distinct):
                    greater = 0
                    ties = 0
                    position = start
                    for i in range(waiting[d], end[d]):
                        row = clip(rows[i], start, stop)
                        tally(&scores[0] + position, row - position, distinct[d], &greater, &ties)
                        before[i] = ties
                        position = row
                    tally(&scores[0] + position, stop - position, distinct[d], &greater, &ties)
                    for i in range(waiting[d], end[d]):
                        above[i] = greater
                        equal[i] = ties
                continue

            for d in range(n_distinct):
                passed[d] = 0
            # `low` becomes the first distinct value that the score is not below; such a score
            # stands above every value after it (and above that one, unless equal to it).
            for position in range(start, stop):
                score = key(scores[position])
                low = 0
                high = n_distinct
                while low < high:
                    middle = (low + high) >> 1
                    if score < distinct[middle]:
                        low = middle + 1
                    else:
                        high = middle
                if low == n_distinct:
                    continue
                if score == distinct[low]:
                    while waiting[low] < end[low] and rows[waiting[low]] <= position:
                        before[waiting[low]] = equal[end[low] - 1]
                        waiting[low] += 1
                    equal[end[low] - 1] += 1
                else:
                    passed[low] += 1
            greater = 0
            i = first
            for d in range(n_distinct):
                ties = equal[end[d] - 1]
                greater += passed[d]
                for j in range(waiting[d], end[d]):
                    before[j] = ties
                while i < end[d]:
                    above[i] = greater
                    equal[i] = ties
                    i += 1
                greater += ties
    return out[:3]


def group_documents(const int64_t[::1] query, const real[::1] score, const double[::1] grade):
    """See `deadheat.ties.numpy_counting.group_documents`."""
    cdef Py_ssize_t i, n = query.shape[0], groups = 0
    cdef bint falling = True
    if score.shape[0] != n or grade.shape[0] != n:
        raise IndexError("query, score and grade must be of the same documents")
    out = np.empty((2, n), np.int64)
    cdef int64_t[:, ::1] indices = out
    with nogil:
        for i in range(n):
            if i == 0 or query[i] != query[i - 1] or key(score[i]) != key(score[i - 1]):
                indices[1, groups] = i
                groups += 1
            elif grade[i] > grade[i - 1]:
                falling = False
            indices[0, i] = groups - 1
    return out[0], out[1, :groups], falling
