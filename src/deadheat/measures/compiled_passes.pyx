# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Every view of a measure in one pass over tie groups, compiled.

The definitions, and their twins in NumPy, are `expected`, `variance` and `at` of the measures. The
letters are those of the formulas there: ``c`` candidates above a group of ``g``, ``r`` of them
relevant, ``T`` of its places count.
"""

import numpy as np

from libc.math cimport ceil, frexp, ldexp, log1p
from libc.stdint cimport int64_t
from libc.stdlib cimport qsort

cdef extern from "math.h" nogil:
    long double log1pl(long double)

ctypedef long double real

# Rows of the views that a pass gives.
cdef enum:
    EXPECTED, BEST, WORST, RULE, VARIANCE, VIEWS

cdef enum:
    TABLE = 64  # harmonic numbers up to here are added up, beyond there is a series
    FEW = 8  # up to so many places of a group are summed one by one

cdef real[TABLE + 1] H
cdef real[TABLE + 1] H2


cdef void _fill_harmonic_numbers() noexcept:
    cdef int n
    H[0] = H2[0] = 0
    for n in range(1, TABLE + 1):
        H[n] = H[n - 1] + <real> 1 / n
        H2[n] = H2[n - 1] + <real> 1 / (n * n)


_fill_harmonic_numbers()


cdef inline int64_t clip(int64_t x, int64_t low, int64_t high) noexcept nogil:
    return low if x < low else high if x > high else x


cdef struct Placed:
    int64_t rank
    int64_t document


cdef int ascending(const void *a, const void *b) noexcept nogil:
    cdef int64_t x = (<const Placed *> a).rank, y = (<const Placed *> b).rank
    return (x > y) - (x < y)


cdef bint firsts(const int64_t[::1] index, int64_t[::1] first) noexcept nogil:
    """Find where each thing begins in entries that stand in their order; false if they do not."""
    cdef Py_ssize_t thing, entry = 0, things = first.shape[0] - 1, entries = index.shape[0]
    for thing in range(things):
        first[thing] = entry
        while entry < entries and index[entry] == thing:
            entry += 1
    first[things] = entry
    return entry == entries


cdef int64_t places_that_count(int64_t g, int64_t r, int64_t T) noexcept nogil:
    """Count the places at which the first relevant document may stand; see `mrr.py`."""
    cdef int64_t length = min(T, g - r + 1)
    cdef double enough
    if length > 37:
        enough = ceil(-37 / log1p(-<double> r / g)) + 1
        if enough < length:
            length = <int64_t> enough
    return length


cdef inline void divide(double[:, ::1] out, Py_ssize_t q, double divisor) noexcept nogil:
    """Divide all views of a query but the variance."""
    cdef int view
    for view in range(VARIANCE):
        out[view, q] /= divisor


cdef inline void settle(double[:, ::1] out, Py_ssize_t q, bint tied) noexcept nogil:
    """Call the larger value best; leave no rounding error where nothing is tied."""
    if out[BEST, q] < out[WORST, q]:
        out[BEST, q], out[WORST, q] = out[WORST, q], out[BEST, q]
    if not tied:
        out[EXPECTED, q] = out[BEST, q]
        out[VARIANCE, q] = 0


cdef class OnePass:
    """The tie groups of all queries, ready for one measure after another.

    Every method gives, in five rows, per query: the expected, best and worst value, the value under
    the tie rule, and the variance.
    """

    cdef readonly bint sound
    """Whether groups and ranks lie inside their lists, and all stands in the order it must."""
    cdef readonly int64_t deepest
    """The length of the longest list, or of the longest ideal ranking if that is longer."""
    cdef const int64_t[::1] above, size, rank, retrieved
    cdef const double[::1] grade
    cdef int64_t[::1] first_group, first_document, first_ideal

    def __init__(self, const int64_t[::1] query, const int64_t[::1] above,
                 const int64_t[::1] size, const int64_t[::1] group, const double[::1] grade,
                 const int64_t[::1] rank, const int64_t[::1] retrieved,
                 const int64_t[::1] ideal_query):
        cdef Py_ssize_t queries = retrieved.shape[0], groups = above.shape[0]
        self.above, self.size, self.rank, self.retrieved = above, size, rank, retrieved
        self.grade = grade
        cdef int64_t[::1] firsts_ = np.empty(2 * queries + groups + 3, np.int64)
        self.first_group = firsts_[: queries + 1]
        self.first_document = firsts_[queries + 1 : queries + groups + 2]
        self.first_ideal = firsts_[queries + groups + 2 :]
        self.sound = (
            query.shape[0] == groups == size.shape[0]
            and group.shape[0] == grade.shape[0] == rank.shape[0]
            and firsts(query, self.first_group)
            and firsts(group, self.first_document)
            and firsts(ideal_query, self.first_ideal)
            and self._look()
        )

    cdef bint _look(self) noexcept nogil:
        cdef Py_ssize_t q, k, i
        cdef bint inside = True
        self.deepest = 0
        for q in range(self.retrieved.shape[0]):
            self.deepest = max(
                self.deepest, self.retrieved[q], self.first_ideal[q + 1] - self.first_ideal[q]
            )
            for k in range(self.first_group[q], self.first_group[q + 1]):
                inside = (
                    inside
                    and 0 <= self.above[k] <= self.retrieved[q]
                    and self.first_document[k + 1] - self.first_document[k] <= self.size[k]
                    and self.size[k] <= self.retrieved[q] - self.above[k]
                )
                for i in range(self.first_document[k], self.first_document[k + 1]):
                    inside = inside and 1 <= self.rank[i] <= self.retrieved[q]
                    if i > self.first_document[k]:
                        inside = inside and self.grade[i - 1] >= self.grade[i]
        return inside

    cdef int64_t _relevant(self, Py_ssize_t k, double rel) noexcept nogil:
        """Count the relevant documents of a group, which come first in it."""
        cdef Py_ssize_t i = self.first_document[k]
        while i < self.first_document[k + 1] and self.grade[i] >= rel:
            i += 1
        return i - self.first_document[k]

    cdef Py_ssize_t _first_relevant(self, Py_ssize_t q, double rel) noexcept nogil:
        """Find the first group of a query with a relevant document; −1 if there is none."""
        cdef Py_ssize_t k
        for k in range(self.first_group[q], self.first_group[q + 1]):
            if self._relevant(k, rel):
                return k
        return -1

    cdef int64_t _first_rank(self, Py_ssize_t q, double rel) noexcept nogil:
        """Give the rank of the first relevant document of a query under the tie rule."""
        cdef Py_ssize_t i
        cdef int64_t first = self.retrieved[q] + 1
        for i in range(self.first_document[self.first_group[q]],
                       self.first_document[self.first_group[q + 1]]):
            if self.grade[i] >= rel and self.rank[i] < first:
                first = self.rank[i]
        return first

    cdef _check(self, bint fits):
        """Refuse arrays of other lengths than the groups': nothing is checked in the loops."""
        if not fits:
            raise IndexError("gains, divisors, depths and tables must fit the tie groups")

    cdef int64_t _last(self, const int64_t[::1] depth) noexcept nogil:
        """Give the last rank that any query looks at."""
        cdef Py_ssize_t q
        cdef int64_t last = 0
        for q in range(depth.shape[0]):
            last = max(last, depth[q])
        return min(last, self.deepest)

    cdef _room(self):
        """Make room for the documents of any query, with their ranks."""
        return np.empty((max(1, self.rank.shape[0]), 2), np.int64)

    cdef Py_ssize_t _by_rank(self, Py_ssize_t q, double lowest, Placed *placed) noexcept nogil:
        """Put the documents of a query from a grade on in the order of the tie rule; count them."""
        cdef Py_ssize_t i, n = 0
        cdef bint ordered = True
        for i in range(self.first_document[self.first_group[q]],
                       self.first_document[self.first_group[q + 1]]):
            if self.grade[i] >= lowest:
                placed[n].rank, placed[n].document = self.rank[i], i
                ordered = ordered and (n == 0 or placed[n - 1].rank < self.rank[i])
                n += 1
        if not ordered:
            qsort(placed, n, sizeof(Placed), ascending)
        return n

    def ideal(self, const double[::1] gain, const double[::1] weight, int64_t cutoff):
        """Add up the weighted gains of each query's ideal ranking; see `ndcg.py`."""
        cdef Py_ssize_t q, n, queries = self.retrieved.shape[0]
        self._check(gain.shape[0] == self.first_ideal[queries]
                    and min(cutoff, self.deepest) < weight.shape[0])
        sums = np.zeros(queries)
        cdef double[::1] out = sums
        with nogil:
            for q in range(queries):
                for n in range(min(self.first_ideal[q + 1] - self.first_ideal[q], cutoff)):
                    out[q] += gain[self.first_ideal[q] + n] * weight[n + 1]
        return sums

    def linear(self, const double[::1] gain, const double[::1] divisor, const int64_t[::1] depth,
               const double[::1] weight, const real[::1] sums, const real[::1] squares):
        """See `linear.py`; the tables are None where every rank weighs 1."""
        cdef Py_ssize_t q, k, i, first, last, queries = self.retrieved.shape[0]
        cdef int64_t c, g, T, j, limit
        cdef bint tied, even = weight is None
        cdef int exponent
        cdef double z, scale, scaled, total, total2, relative
        cdef real s1, s2
        self._check(gain.shape[0] == self.rank.shape[0]
                    and divisor.shape[0] == depth.shape[0] == queries
                    and (even or self._last(depth)
                         < min(weight.shape[0], sums.shape[0], squares.shape[0])))
        rows = np.zeros((VIEWS, queries))
        cdef double[:, ::1] out = rows
        with nogil:
            for q in range(queries):
                z, limit = divisor[q], depth[q]
                if not z > 0:
                    continue
                tied = False
                for k in range(self.first_group[q], self.first_group[q + 1]):
                    c, g = self.above[k], self.size[k]
                    first, last = self.first_document[k], self.first_document[k + 1]
                    tied = tied or g > 1
                    for i in range(first, last):
                        j = i - first
                        if c + 1 + j <= limit:
                            out[BEST, q] += gain[i] * (1 if even else weight[c + 1 + j])
                        if c + g - j <= limit:
                            out[WORST, q] += gain[i] * (1 if even else weight[c + g - j])
                        if self.rank[i] <= limit:
                            out[RULE, q] += gain[i] * (1 if even else weight[self.rank[i]])
                    T = clip(limit - c, 0, g)
                    if T == 0 or first == last:
                        continue
                    s1 = T if even else sums[c + T] - sums[c]
                    s2 = T if even else squares[c + T] - squares[c]
                    # The power of two next to the largest gain: scaling by it rounds nothing.
                    frexp(gain[first], &exponent)
                    scale = ldexp(1, exponent)
                    total = total2 = 0
                    for i in range(first, last):
                        scaled = ldexp(gain[i], -exponent)
                        total += scaled
                        total2 += scaled * scaled
                    out[EXPECTED, q] += <double> (scale * total / g * s1)
                    if g > 1:
                        relative = scale / z
                        s2 = (total2 - total * total / g) / g * ((g * s2 - s1 * s1) / (g - 1))
                        if s2 > 0:
                            out[VARIANCE, q] += <double> (s2 * relative * relative)
                divide(out, q, z)
                settle(out, q, tied)
        return rows

    def reciprocal_rank(self, double rel, const int64_t[::1] depth, int64_t most):
        """See `mrr.py`; also gives the queries whose group has more than `most` places that count.

        Of each of these: its index, ``c``, ``g``, ``r``, and the number of places.
        """
        cdef Py_ssize_t q, k, queries = self.retrieved.shape[0]
        cdef int64_t c, g, r, T, t, length
        cdef double passing, left, part, first, second
        self._check(depth.shape[0] == queries)
        rows, long_ = np.zeros((VIEWS, queries)), []
        cdef double[:, ::1] out = rows
        with nogil:
            for q in range(queries):
                k = self._first_relevant(q, rel)
                if k < 0:
                    continue
                c, g, r = self.above[k], self.size[k], self._relevant(k, rel)
                T = clip(depth[q] - c, 0, g)
                out[BEST, q] = reciprocal(c + 1, depth[q])
                out[WORST, q] = reciprocal(c + g - r + 1, depth[q])
                out[RULE, q] = reciprocal(self._first_rank(q, rel), depth[q])
                length = places_that_count(g, r, T)
                if length > most:
                    with gil:
                        long_.append((q, c, g, r, length))
                    continue
                passing, first, second = 1, 0, 0
                for t in range(length):
                    left = g - t
                    part = r / left * passing / (c + 1 + t)
                    first += part
                    second += part / (c + 1 + t)
                    passing *= (left - r) / left
                out[EXPECTED, q] = first
                out[VARIANCE, q] = max(second - first * first, 0)
                settle(out, q, g > 1)
        return rows, long_

    def success(self, double rel, const int64_t[::1] depth):
        """See `success.py`."""
        cdef Py_ssize_t q, k, queries = self.retrieved.shape[0]
        cdef int64_t c, g, r, T, t, many
        cdef double miss
        self._check(depth.shape[0] == queries)
        rows = np.zeros((VIEWS, queries))
        cdef double[:, ::1] out = rows
        with nogil:
            for q in range(queries):
                k = self._first_relevant(q, rel)
                if k < 0:
                    continue
                c, g, r = self.above[k], self.size[k], self._relevant(k, rel)
                T = clip(depth[q] - c, 0, g)
                out[BEST, q] = c + 1 <= depth[q]
                out[WORST, q] = c + g - r + 1 <= depth[q]
                out[RULE, q] = self._first_rank(q, rel) <= depth[q]
                # T places without any of r documents, or r places without any of T.
                many, miss = max(T, r), 1
                for t in range(places_that_count(g, many, min(T, r))):
                    miss *= max(g - t - many, 0) / <double> (g - t)
                out[EXPECTED, q] = 1 - miss
                out[VARIANCE, q] = (1 - miss) * miss
                settle(out, q, g > 1)
        return rows

    def average_precision(self, double rel, const double[::1] divisor, const int64_t[::1] depth):
        """See `map.py`."""
        cdef Py_ssize_t q, k, i, queries = self.retrieved.shape[0]
        cdef int64_t c, g, r, T, j, ahead, limit
        cdef bint tied
        cdef double z, first, second
        self._check(divisor.shape[0] == depth.shape[0] == queries)
        rows = np.zeros((VIEWS, queries))
        cdef double[:, ::1] out = rows
        cdef int64_t[:, ::1] room = self._room()
        cdef Placed *placed = <Placed *> &room[0, 0]
        with nogil:
            for q in range(queries):
                z, limit = divisor[q], depth[q]
                if not z > 0:
                    continue
                tied = False
                ahead = 0
                for k in range(self.first_group[q], self.first_group[q + 1]):
                    c, g, r = self.above[k], self.size[k], self._relevant(k, rel)
                    tied = tied or g > 1
                    for j in range(r):
                        if c + 1 + j <= limit:
                            out[BEST, q] += (ahead + 1 + j) / <double> (c + 1 + j)
                        if c + g - r + 1 + j <= limit:
                            out[WORST, q] += (ahead + 1 + j) / <double> (c + g - r + 1 + j)
                    T = clip(limit - c, 0, g)
                    if T and r:
                        average_moments(c, g, T, r, ahead + 1, &first, &second)
                        out[EXPECTED, q] += first
                        # Where every document is relevant nothing can vary.
                        if r < g and second > first * first:
                            out[VARIANCE, q] += second - first * first
                    ahead += r
                for i in range(self._by_rank(q, rel, placed)):
                    if placed[i].rank <= limit:
                        out[RULE, q] += (i + 1) / <double> placed[i].rank
                divide(out, q, z)
                out[VARIANCE, q] /= z * z
                settle(out, q, tied)
        return rows

    def preference(self, double rel, const double[::1] divisor, const double[::1] most):
        """See `bpref.py`, where the letters are explained."""
        cdef Py_ssize_t q, k, i, document, queries = self.retrieved.shape[0]
        cdef int64_t r, A
        cdef bint tied
        cdef double z, m, n, b, terms, total, squares
        self._check(divisor.shape[0] == most.shape[0] == queries)
        rows = np.zeros((VIEWS, queries))
        cdef double[:, ::1] out = rows
        cdef int64_t[:, ::1] room = self._room()
        cdef Placed *placed = <Placed *> &room[0, 0]
        with nogil:
            for q in range(queries):
                z, m = divisor[q], most[q]
                if not z > 0:
                    continue
                tied = False
                A = 0
                for k in range(self.first_group[q], self.first_group[q + 1]):
                    tied = tied or self.size[k] > 1
                    r, n = self._relevant(k, rel), 0
                    for document in range(self.first_document[k] + r, self.first_document[k + 1]):
                        n += self.grade[document] >= 0
                    out[BEST, q] += r * preferred(A, m)
                    out[WORST, q] += r * preferred(A + n, m)
                    if m > 0:
                        b = max(m - A, 0)
                        terms = min(b, n + 1)
                        total = terms * b - terms * (terms - 1) / 2
                        squares = (terms * b * (b - terms + 1)
                                   + (terms - 1) * terms * (2 * terms - 1) / 6)
                        out[EXPECTED, q] += r * total / ((n + 1) * m)
                        squares = max((n + 1) * squares - total * total, 0) / ((n + 1) * m) ** 2
                        out[VARIANCE, q] += r * squares * (n + r + 1) / (n + 2)
                    else:
                        out[EXPECTED, q] += r
                    A += <int64_t> n
                A = 0
                for i in range(self._by_rank(q, 0, placed)):
                    if self.grade[placed[i].document] >= rel:
                        out[RULE, q] += preferred(A, m)
                    else:
                        A += 1
                divide(out, q, z)
                out[VARIANCE, q] /= z * z
                settle(out, q, tied)
        return rows

    def expected_reciprocal_rank(self, const double[::1] stopping, const int64_t[::1] depth,
                                 int64_t most):
        """See `err.py`; None where a group has more than `most` places times documents.

        There is no variance: its row is 0.
        """
        cdef Py_ssize_t q, k, i, first, last, queries = self.retrieved.shape[0]
        cdef int64_t c, g, T, t, n, limit, longest = 0
        cdef bint tied
        cdef double reached, passed, before, kept
        self._check(stopping.shape[0] == self.rank.shape[0] and depth.shape[0] == queries)
        for q in range(queries):
            for k in range(self.first_group[q], self.first_group[q + 1]):
                T = clip(depth[q] - self.above[k], 0, self.size[k])
                longest = max(longest, T)
                if T * (self.first_document[k + 1] - self.first_document[k]) > most:
                    return None
        rows = np.zeros((VIEWS, queries))
        cdef double[:, ::1] out = rows
        cdef double[::1] passing = np.empty(longest + 1)
        cdef int64_t[:, ::1] room = self._room()
        cdef Placed *placed = <Placed *> &room[0, 0]
        with nogil:
            for q in range(queries):
                limit = depth[q]
                tied, reached = False, 1
                for k in range(self.first_group[q], self.first_group[q + 1]):
                    c, g = self.above[k], self.size[k]
                    first, last = self.first_document[k], self.first_document[k + 1]
                    tied = tied or g > 1
                    passed = before = reached
                    for i in range(first, last):
                        if c + 1 + i - first <= limit:
                            out[BEST, q] += passed * stopping[i] / (c + 1 + i - first)
                        passed *= 1 - stopping[i]
                    for i in range(last - 1, first - 1, -1):
                        if c + g - (i - first) <= limit:
                            out[WORST, q] += before * stopping[i] / (c + g - (i - first))
                        before *= 1 - stopping[i]
                    T = clip(limit - c, 0, g)
                    # Documents that never stop the reader come first; then one after another is
                    # added, from the last place to the first, whose old value the next one needs.
                    for t in range(T + 1):
                        passing[t] = t <= g - (last - first)
                    for i in range(first, last):
                        n = g - (last - first) + (i - first)
                        kept = 1 - stopping[i]
                        for t in range(T, 0, -1):
                            passing[t] = ((n + 1 - t) * passing[t]
                                          + t * kept * passing[t - 1]) / (n + 1)
                    for t in range(T):
                        out[EXPECTED, q] += reached * (passing[t] - passing[t + 1]) / (c + 1 + t)
                    reached = passed
                reached = 1
                for i in range(self._by_rank(q, 0, placed)):
                    if placed[i].rank <= limit:
                        out[RULE, q] += (reached * stopping[placed[i].document]
                                         / placed[i].rank)
                        reached *= 1 - stopping[placed[i].document]
                settle(out, q, tied)
        return rows


cdef inline double reciprocal(int64_t rank, int64_t limit) noexcept nogil:
    return 1.0 / rank if rank <= limit else 0


cdef inline double preferred(double above, double most) noexcept nogil:
    """What a relevant document below so many judged non-relevant ones adds to bpref."""
    return 1 - min(above, most) / most if most > 0 else 1


cdef void average_moments(int64_t c, int64_t g, int64_t T, int64_t r, double ahead,
                          double *first, double *second) noexcept nogil:
    """First two moments of what a group adds to N·AP; `PlaceSums` in `map.py` names the sums."""
    cdef real b, b2, s1, s2, s3, h, u, w, x, v, p1, p2, p3, p4, one
    cdef int64_t j
    if g == 1:
        first[0] = ahead / (c + 1)
        second[0] = first[0] * first[0]
        return
    if T <= FEW:
        b = b2 = s1 = s2 = s3 = h = u = w = 0
        for j in range(T):
            x = <real> 1 / (c + 1 + j)
            h += b * x
            u += s1 * x
            w += (j - 2) * s1 * x
            b += x
            s1 += j * x
            b2 += x * x
            s2 += j * x * x
            s3 += j * (j - 1) * x * x
    else:
        harmonic_sums(c, T, &b, &b2)
        one = c + 1
        s1 = T - one * b
        s2 = b - one * b2
        s3 = T - (2 * one + 1) * b + one * (one + 1) * b2
        h = (b * b - b2) / 2
        u = s1 - one * h
        v = <real> T * (T - 1) / 2 - one * ((T + c) * b - T)
        w = v - (one + 2) * u
    p1 = <real> r / g
    p2 = p1 * max(r - 1, 0) / max(g - 1, 1)
    p3 = p2 * max(r - 2, 0) / max(g - 2, 1)
    p4 = p3 * max(r - 3, 0) / max(g - 3, 1)
    first[0] = <double> (ahead * p1 * b + p2 * s1)
    second[0] = <double> (
        ahead * ahead * (p1 * b2 + 2 * p2 * h)
        + 2 * ahead * ((p2 - p3) * (s2 + h) + p3 * b * s1)
        + (p2 * s2 + p3 * s3 + 4 * p3 * u + 2 * p4 * w)
    )


cdef void harmonic_sums(int64_t c, int64_t n, real *b, real *b2) noexcept nogil:
    """Sum 1/rank and 1/rank² over the `n` ranks that follow rank `c`; see `map.py`."""
    cdef real low = max(c, TABLE), high = max(c + n, TABLE)
    cdef real x = 1 / low, y = 1 / high
    b[0] = H[min(c + n, TABLE)] - H[min(c, TABLE)] + log1pl((high - low) * x)
    b[0] += harmonic_rest(y) - harmonic_rest(x)
    b2[0] = H2[min(c + n, TABLE)] - H2[min(c, TABLE)] + (high - low) * x * y
    b2[0] += square_rest(x) - square_rest(y)


cdef inline real harmonic_rest(real v) noexcept nogil:
    return v / 2 - v * v * (<real> 1 / 12 - v * v * (<real> 1 / 120 - v * v / 252))


cdef inline real square_rest(real v) noexcept nogil:
    return -v * v / 2 + v * v * v * (<real> 1 / 6 - v * v * (<real> 1 / 30 - v * v / 42))
