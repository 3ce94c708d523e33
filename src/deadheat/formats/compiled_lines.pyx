# cython: boundscheck=False, wraparound=False, cdivision=True
"""Runs in TREC files, compiled: lines of fields between white space, read in one pass.

`trec.py` defines the format. It also reads what is not plain: bytes beyond ASCII, numbers that are
words, lines with another number of fields.
"""

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc, realloc, strtod
from libc.string cimport memchr, memcmp, memcpy, memset

import os

import numpy as np

ctypedef const unsigned char* Text

cdef enum:
    EXACT_POWER = 22  # the largest power of ten that a double holds
    MOST_DIGITS = 19  # of a 64-bit integer

cdef uint64_t LARGEST_WHOLE = 1ULL << 53
cdef double POWERS[EXACT_POWER + 1]
cdef unsigned char KIND[256]
"""0: part of a field; 1: white space; 2: end of a line."""

for n in range(EXACT_POWER + 1):
    POWERS[n] = 10.0**n
for byte in range(256):
    KIND[byte] = 2 if byte == 10 else 1 if byte in b" \t\r\x0b\x0c" else 0

cdef uint64_t SEED = int.from_bytes(os.urandom(8), "little")  # a file cannot be made to have equal hashes


cdef inline uint64_t _mixed(uint64_t hash_, uint64_t word) noexcept nogil:
    hash_ = (hash_ ^ word) * <uint64_t>0x9E3779B97F4A7C15
    return hash_ ^ (hash_ >> 29)


cdef inline uint32_t _hash(Text text, Py_ssize_t length) noexcept nogil:
    cdef uint64_t hash_ = _mixed(SEED, <uint64_t>length)
    cdef uint64_t word
    while length >= 8:
        memcpy(&word, text, 8)
        hash_ = _mixed(hash_, word)
        text += 8
        length -= 8
    if length:
        word = 0
        memcpy(&word, text, length)
        hash_ = _mixed(hash_, word)
    return <uint32_t>(hash_ >> 32)


cdef bint _number(Text text, Text end, double* value) noexcept nogil:
    """Read a decimal number as the nearest double; return False for anything else."""
    cdef Text start = text
    cdef char* stopped
    cdef bint negative = text < end and text[0] == 45
    if text < end and (text[0] == 43 or text[0] == 45):
        text += 1
    cdef uint64_t digits = 0
    cdef int significant = 0
    cdef int64_t power = 0
    cdef int64_t exponent = 0
    cdef bint any_digit = False
    cdef bint after_point = False
    cdef bint below_one
    cdef unsigned char c
    while text < end:
        c = text[0]
        if 48 <= c <= 57:
            any_digit = True
            if significant or c != 48:
                significant += 1
                if significant <= MOST_DIGITS:
                    digits = digits * 10 + (c - 48)
            if after_point:
                power -= 1
        elif c == 46 and not after_point:
            after_point = True
        else:
            break
        text += 1
    if not any_digit:
        return False
    if text < end:
        if text[0] != 101 and text[0] != 69:
            return False
        text += 1
        below_one = text < end and text[0] == 45
        if text < end and (text[0] == 43 or text[0] == 45):
            text += 1
        if text == end:
            return False
        while text < end:
            c = text[0]
            if not 48 <= c <= 57:
                return False
            if exponent < 100000:
                exponent = exponent * 10 + (c - 48)
            text += 1
        power += -exponent if below_one else exponent
    if (
        significant <= MOST_DIGITS
        and digits <= LARGEST_WHOLE
        and -EXACT_POWER <= power <= EXACT_POWER
    ):
        # Both numbers are exact, so their product or quotient is rounded once.
        value[0] = digits * POWERS[power] if power >= 0 else digits / POWERS[-power]
        if negative:
            value[0] = -value[0]
        return True
    value[0] = strtod(<const char*>start, &stopped)
    return stopped == <const char*>end  # a locale may have another decimal point


cdef struct Spans:
    int64_t* values  # three each
    Py_ssize_t count
    Py_ssize_t room


cdef bint _append(Spans* spans, int64_t a, int64_t b, int64_t c) noexcept nogil:
    cdef int64_t* larger
    if spans.count == spans.room:
        spans.room = 2 * spans.room + 1024
        larger = <int64_t*>realloc(spans.values, 3 * spans.room * sizeof(int64_t))
        if larger == NULL:
            return False
        spans.values = larger
    spans.values[3 * spans.count] = a
    spans.values[3 * spans.count + 1] = b
    spans.values[3 * spans.count + 2] = c
    spans.count += 1
    return True


cdef _as_array(Spans* spans):
    found = np.empty((spans.count, 3), np.int64)
    cdef int64_t[:, ::1] view = found
    if spans.count:
        memcpy(&view[0, 0], spans.values, 3 * spans.count * sizeof(int64_t))
    return found


def scan(
    bytes data not None,
    Py_ssize_t start,
    Py_ssize_t stop,
    int fields,
    int doc_field,
    int score_field,
    int64_t[::1] doc_starts,
    int32_t[::1] doc_lengths,
    uint32_t[::1] hashes,
    double[::1] scores,
):
    """Read the lines in ``data[start:stop]``, the query being the first field.

    Returns
    -------
    rows, queries
        The number of lines that were read into the arrays, which must have room for all; and per
        stretch of lines of one query its first row, and the start and length of the query. None if
        a line is not plain.
    """
    cdef Spans queries = Spans(NULL, 0, 0)
    cdef Py_ssize_t room = min(
        doc_starts.shape[0], doc_lengths.shape[0], hashes.shape[0], scores.shape[0]
    )
    cdef Py_ssize_t rows = -1
    cdef Text text = data  # ends with a zero, at which strtod stops
    if not 0 <= start <= stop <= len(data):
        raise ValueError("start and stop must be a part of the data")
    try:
        if start < stop and room:
            with nogil:
                rows = _scan(
                    text, start, stop, fields, doc_field, score_field, &doc_starts[0],
                    &doc_lengths[0], &hashes[0], &scores[0], room, &queries,
                )
        if rows < 0:
            return None
        return rows, _as_array(&queries)
    finally:
        free(queries.values)


cdef Py_ssize_t _scan(
    Text data, Py_ssize_t start, Py_ssize_t stop, int fields, int doc_field, int score_field,
    int64_t* doc_starts, int32_t* doc_lengths, uint32_t* hashes, double* scores,
    Py_ssize_t room, Spans* queries,
) noexcept nogil:
    cdef Text p = data + start
    cdef Text end = data + stop
    cdef Text query = NULL
    cdef Py_ssize_t query_length = 0
    cdef Text field
    cdef Py_ssize_t length
    cdef int number
    cdef Py_ssize_t row = 0
    cdef unsigned char all_bytes = 0
    while p < end:
        if p[0] == 35:  # a comment
            field = <Text>memchr(p, 10, end - p)
            length = (field if field != NULL else end) - p
            while length:
                all_bytes |= p[0]
                p += 1
                length -= 1
            p = p + 1 if p < end else end
            continue
        number = 0
        if (
            query != NULL
            and end - p > query_length
            and memcmp(p, query, query_length) == 0
            and KIND[p[query_length]] == 1
        ):  # the query of the line before
            p += query_length
            number = 1
        while True:
            while p < end and KIND[p[0]] == 1:
                p += 1
            if p == end or p[0] == 10:
                break
            field = p
            while p < end and KIND[p[0]] == 0:
                all_bytes |= p[0]
                p += 1
            length = p - field
            if number == 0:
                query = field
                query_length = length
                if not _append(queries, row, field - data, length):
                    return -1
            elif number == doc_field:
                if row == room or length > 0x7fffffff:
                    return -1
                doc_starts[row] = field - data
                doc_lengths[row] = <int32_t>length
                hashes[row] = _hash(field, length)
            elif number == score_field:
                if row == room:
                    return -1
                if length > 100 or not _number(field, p, scores + row):
                    return -1
            number += 1
        if p < end:
            p += 1
        if number == 0:  # an empty line
            continue
        if number != fields:
            return -1
        row += 1
    return row if all_bytes < 128 else -1


cdef inline bint _same(
    Text data, int64_t[::1] starts, int32_t[::1] lengths, Py_ssize_t one, Py_ssize_t other
) noexcept nogil:
    return (
        lengths[one] == lengths[other]
        and memcmp(data + starts[one], data + starts[other], lengths[one]) == 0
    )


cdef enum:
    LONGEST = 1 << 28  # list of one query; its table has four times as many places, or up to eight


cdef uint32_t _table_size(Py_ssize_t entries) noexcept nogil:
    cdef uint32_t size = 64
    while size < 4 * entries:
        size *= 2
    return size


def count_lines(const unsigned char[::1] data, Py_ssize_t start, Py_ssize_t stop):
    """Count the ends of lines in ``data[start:stop]``."""
    cdef Py_ssize_t count = 0
    cdef Py_ssize_t i
    if not 0 <= start <= stop <= data.shape[0]:
        raise ValueError("start and stop must be a part of the data")
    with nogil:
        for i in range(start, stop):
            count += data[i] == 10
    return count


def first_twice(
    const unsigned char[::1] data,
    int64_t[::1] starts,
    int32_t[::1] lengths,
    uint32_t[::1] hashes,
    int64_t[::1] offsets,
):
    """Return the first row that repeats a document of its query, and the row that it repeats; or None.

    The rows of query ``q`` are ``offsets[q]:offsets[q + 1]``.
    """
    cdef Py_ssize_t longest = int(np.diff(np.asarray(offsets)).max(initial=0))
    if longest > LONGEST:
        raise ValueError("a query has more than 268 million documents")
    cdef int32_t* table = <int32_t*>malloc(_table_size(longest) * sizeof(int32_t))
    cdef Py_ssize_t q, row
    cdef Py_ssize_t one = -1
    cdef Py_ssize_t other = -1
    cdef int64_t first
    cdef uint32_t mask, place
    if table == NULL:
        raise MemoryError
    with nogil:
        for q in range(offsets.shape[0] - 1):
            first = offsets[q]
            mask = _table_size(offsets[q + 1] - first) - 1
            memset(table, 0xff, (mask + 1) * sizeof(int32_t))  # −1 everywhere
            for row in range(first, offsets[q + 1]):
                place = hashes[row] & mask
                while table[place] >= 0:
                    other = first + table[place]
                    if hashes[other] == hashes[row] and _same(
                        &data[0], starts, lengths, other, row
                    ):
                        one = row
                        break
                    place = (place + 1) & mask
                if one >= 0:
                    break
                table[place] = <int32_t>(row - first)
            if one >= 0:
                break
    free(table)
    return None if one < 0 else (one, other)


def find(
    const unsigned char[::1] data,
    int64_t[::1] starts,
    int32_t[::1] lengths,
    uint32_t[::1] hashes,
    int64_t[::1] offsets,
    int64_t[::1] queries,
    const unsigned char[::1] ids,
    int64_t[::1] id_offsets,
):
    """Return the row of each sought document in the list of its query, −1 if it is missing.

    Document ``i`` is sought in query ``queries[i]``; its id is ``ids[id_offsets[i]:id_offsets[i +
    1]]``. The documents of a query are adjacent.
    """
    cdef Py_ssize_t n = queries.shape[0]
    found = np.full(n, -1, np.int64)
    cdef int64_t[::1] rows = found
    cdef Py_ssize_t first = 0
    cdef Py_ssize_t last, i, row
    cdef int64_t* table
    cdef uint32_t* sought
    cdef uint32_t mask, place
    cdef Text id_bytes = &ids[0] if ids.shape[0] else NULL
    if n == 0:
        return found
    if n > LONGEST:
        raise ValueError("more than 268 million documents")
    table = <int64_t*>malloc(_table_size(n) * sizeof(int64_t))
    sought = <uint32_t*>malloc(n * sizeof(uint32_t))
    if table == NULL or sought == NULL:
        free(table)
        free(sought)
        raise MemoryError
    with nogil:
        for i in range(n):
            sought[i] = _hash(id_bytes + id_offsets[i], id_offsets[i + 1] - id_offsets[i])
        while first < n:
            last = first
            while last < n and queries[last] == queries[first]:
                last += 1
            mask = _table_size(last - first) - 1
            memset(table, 0xff, (mask + 1) * sizeof(int64_t))  # −1 everywhere
            for i in range(first, last):
                place = sought[i] & mask
                while table[place] >= 0:
                    place = (place + 1) & mask
                table[place] = i
            for row in range(offsets[queries[first]], offsets[queries[first] + 1]):
                place = hashes[row] & mask
                while table[place] >= 0:
                    i = table[place]
                    if (
                        sought[i] == hashes[row]
                        and id_offsets[i + 1] - id_offsets[i] == lengths[row]
                        and memcmp(
                            id_bytes + id_offsets[i], &data[0] + starts[row], lengths[row]
                        ) == 0
                    ):
                        rows[i] = row
                    place = (place + 1) & mask
            first = last
    free(table)
    free(sought)
    return found
