# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Counting and grouping, compiled. `numpy_counting.py` is the definition and the NumPy twin."""

import numpy as np

from cython cimport floating
from libc.stdint cimport int16_t, int64_t
from libc.stdlib cimport qsort

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

cdef enum:
    FEW = 48  # distinct values: up to so many, a vectorised pass for each beats a binary search
    COUNTS = 7  # rows: three of counts, and four of scratch
    SHORT = 16  # up to so many documents are sorted by insertion


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
    _check_inside(scores.shape[0], starts, stops, offsets, values.shape[0], rows.shape[0])
    out = np.zeros((COUNTS, values.shape[0]), np.int64)
    cdef int64_t[:, ::1] counts = out
    with nogil:
        count(scores, starts, stops, offsets, values, rows, counts)
    return out[:3]


cdef void count(const real[::1] scores, const int64_t[::1] starts, const int64_t[::1] stops,
                const int64_t[::1] offsets, const real[::1] values, const int64_t[::1] rows,
                int64_t[:, ::1] counts) noexcept nogil:
    """Count into the first three rows of `counts`, which are 0; the others are scratch."""
    if values.shape[0] == 0 or scores.shape[0] == 0:
        return
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
    for q in range(offsets.shape[0] - 1):
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


cdef struct Document:
    double key
    int64_t place
    int64_t index


cdef inline bint precedes(const Document *a, const Document *b) noexcept nogil:
    return a.key > b.key or (a.key == b.key and a.place < b.place)


cdef int compare(const void *a, const void *b) noexcept nogil:
    cdef const Document *x = <const Document *> a
    cdef const Document *y = <const Document *> b
    return precedes(y, x) - precedes(x, y)


cdef void sort(Document *documents, Py_ssize_t n) noexcept nogil:
    """Put documents in order: the greater key first, and of equal ones the earlier place."""
    cdef Py_ssize_t i, j
    cdef Document document
    if n > SHORT:
        qsort(documents, n, sizeof(Document), compare)
        return
    for i in range(1, n):
        document = documents[i]
        j = i
        while j > 0 and precedes(&document, &documents[j - 1]):
            documents[j] = documents[j - 1]
            j -= 1
        documents[j] = document


def sort_documents(const int64_t[::1] query, const floating[::1] score, const int64_t[::1] place,
                   Py_ssize_t n_queries):
    """See `deadheat.ties.numpy_counting.sort_documents`."""
    cdef Py_ssize_t n = query.shape[0], q, i, first, last = 0
    cdef bint ascending = True
    if not score.shape[0] == place.shape[0] == n or n_queries < 0:
        raise IndexError("query, score and place must have the same length")
    for i in range(n):
        if not 0 <= query[i] < n_queries:
            raise IndexError("query must lie below n_queries")
        if i and query[i] < query[i - 1]:
            ascending = False
    if not ascending:
        by_query = np.argsort(query, kind="stable")
        order, offsets = sort_documents(np.asarray(query)[by_query], np.asarray(score)[by_query],
                                        np.asarray(place)[by_query], n_queries)
        return by_query[order], offsets
    order, offsets = np.empty(n, np.int64), np.empty(n_queries + 1, np.int64)
    cdef int64_t[::1] ordered = order, begin = offsets
    cdef int64_t[:, ::1] buffer = np.empty((max(1, n), 3), np.int64)
    cdef Document *documents = <Document *> &buffer[0, 0]
    with nogil:
        for q in range(n_queries):
            first = last
            begin[q] = first
            while last < n and query[last] == q:
                documents[last].key = score[last]
                documents[last].place = place[last]
                documents[last].index = last
                last += 1
            sort(documents + first, last - first)
            for i in range(first, last):
                ordered[i] = documents[i].index
        begin[n_queries] = n
    return order, offsets


def group_documents(const int64_t[::1] query, const floating[::1] score, const double[::1] grade):
    """See `deadheat.ties.numpy_counting.group_documents`."""
    cdef Py_ssize_t n = query.shape[0], i, first = 0, last, groups = 0
    if not score.shape[0] == grade.shape[0] == n:
        raise IndexError("query, score and grade must have the same length")
    found = np.empty((3, n), np.int64)
    cdef int64_t[:, ::1] out = found
    cdef int64_t[:, ::1] buffer = np.empty((max(1, n), 3), np.int64)
    cdef Document *documents = <Document *> &buffer[0, 0]
    with nogil:
        while first < n:
            last = first
            while last < n and query[last] == query[first] and score[last] == score[first]:
                documents[last].key = grade[last]
                documents[last].place = last
                last += 1
            if last == first:  # NaN, which equals nothing
                documents[last].place = last
                last += 1
            sort(documents + first, last - first)
            out[0, groups] = first
            for i in range(first, last):
                out[1, i] = groups
                out[2, i] = documents[i].place
            groups += 1
            first = last
    return found[0, :groups], found[1], found[2]
