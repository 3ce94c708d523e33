from libc cimport math

ctypedef (double, double, double, double, double, double, double, double, double) Values
ctypedef (double, double, double, double) Views

cpdef (double, double) harmonic_sums(long long c, long long n) noexcept
cdef double harmonic_rest(double v) noexcept
cdef double square_rest(double v) noexcept
cdef Values reciprocal_sums(long long c, long long places, bint whole) noexcept
cdef (double, double) moments(Values sums, long long g, long long r, long long ahead) noexcept
cdef double precision_sum(
    long long first, long long count, long long ahead, long long limit
) noexcept

cdef Views cut_group_views(
    long long c, long long g, long long r, long long limit, long long ahead, Views others
) noexcept

cpdef void average_precision_views(
    const long long[::1] in_queries, const long long[::1] above, const long long[::1] size,
    const long long[::1] relevant, const long long[::1] ranks, const long long[::1] depth,
    const double[::1] divisor, double[:, ::1] out,
)
