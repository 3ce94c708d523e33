# cython: boundscheck=False, wraparound=False
"""Loops over the keys and values of a dictionary, compiled. `keys.py` has the same in Python."""

from cpython.dict cimport PyDict_GetItem, PyDict_Next
from cpython.float cimport PyFloat_AS_DOUBLE, PyFloat_Check
from cpython.long cimport PyLong_AsLongLongAndOverflow, PyLong_CheckExact
from cpython.object cimport PyObject, PyObject_Hash
from cpython.unicode cimport PyUnicode_Check, PyUnicode_GET_LENGTH, PyUnicode_KIND
from libc.stdint cimport uint64_t

cdef long long LARGEST_WHOLE = 1LL << 53


def places_of(dict docs not None, dict wanted not None):
    """See `deadheat.formats.keys.python_places_of`."""
    cdef list places = [-1] * len(wanted)
    # A key whose hash ends in none of the wanted hashes' last six bits needs no look-up.
    cdef uint64_t endings = 0
    for name in wanted:
        endings |= (<uint64_t>1) << (<uint64_t>hash(name) & 63)
    cdef Py_ssize_t position = 0
    cdef Py_ssize_t place = 0
    cdef PyObject *key
    cdef PyObject *index
    while PyDict_Next(docs, &position, &key, NULL):
        if (endings >> (<uint64_t>PyObject_Hash(<object>key) & 63)) & 1:
            index = PyDict_GetItem(wanted, <object>key)
            if index != NULL:
                places[<object>index] = place
        place += 1
    return places


def plain_list(dict docs not None, double[::1] numbers):
    """See `deadheat.formats.keys.python_plain_list`."""
    if len(docs) != numbers.shape[0]:
        raise ValueError("numbers must have a place for each document")
    cdef Py_ssize_t position = 0
    cdef Py_ssize_t place = 0
    cdef PyObject *key
    cdef PyObject *value
    cdef Py_UCS4 character
    cdef long long whole
    cdef int overflow
    while PyDict_Next(docs, &position, &key, &value):
        if not PyUnicode_Check(<object>key) or PyUnicode_GET_LENGTH(<object>key) == 0:
            return False
        if PyUnicode_KIND(<object>key) > 1:
            for character in <str>key:
                if 0xD800 <= character <= 0xDFFF:
                    return False
        if PyFloat_Check(<object>value):
            numbers[place] = PyFloat_AS_DOUBLE(<object>value)
        elif PyLong_CheckExact(<object>value):
            whole = PyLong_AsLongLongAndOverflow(<object>value, &overflow)
            if overflow or whole > LARGEST_WHOLE or whole < -LARGEST_WHOLE:
                return False
            numbers[place] = <double>whole
        else:
            return False
        place += 1
    return True
