# cython: boundscheck=False, wraparound=False
"""Looks up places of keys, compiled. `keys.py` holds its definition, the Python twin."""

from cpython.dict cimport PyDict_GetItem, PyDict_Next
from cpython.object cimport PyObject, PyObject_Hash
from cpython.unicode cimport PyUnicode_Check
from libc.stdint cimport uint64_t


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
        if not PyUnicode_Check(<object>key):
            return None
        if (endings >> (<uint64_t>PyObject_Hash(<object>key) & 63)) & 1:
            index = PyDict_GetItem(wanted, <object>key)
            if index != NULL:
                places[<object>index] = place
        place += 1
    return places
