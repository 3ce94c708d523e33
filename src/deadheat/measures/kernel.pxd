# No types: compiled only so that calls take less time, 3 µs of a small evaluation.
