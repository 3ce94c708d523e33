cdef double weight_of(long long rank, const double[::1] weight, object measure)

cdef (double, double) weight_sums(
    long long c, long long places, const double[::1] weight, const double[::1] sums,
    const double[::1] squares, object measure,
)

cpdef void ideal_sums(
    const long long[::1] in_queries, const double[::1] gain, long long cutoff,
    const double[::1] weight, object measure, double[:, ::1] out,
)

cpdef void linear_views(
    const long long[::1] in_queries, const long long[::1] in_groups, const long long[::1] above,
    const long long[::1] size, const long long[::1] rank, const double[::1] gain,
    const long long[::1] depth, const double[::1] divisor, const double[::1] weight,
    const double[::1] sums, const double[::1] squares, object measure, double[:, ::1] out,
)
