cdef double value_at(long long rank, long long limit, bint reciprocal) noexcept
cdef double miss_probability(long long g, long long r, long long places) noexcept

cdef (double, double) reciprocal_rank_moments(
    long long c, long long g, long long r, long long places
) noexcept

cpdef void first_relevant_views(
    const long long[::1] in_queries, const long long[::1] above, const long long[::1] size,
    const long long[::1] relevant, const long long[::1] ranks, const long long[::1] depth,
    bint reciprocal, double[:, ::1] out,
)
