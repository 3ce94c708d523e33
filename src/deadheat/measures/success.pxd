cdef double miss_probability(long long g, long long r, long long places) noexcept

cpdef void success_views(
    const long long[::1] in_queries, const long long[::1] above, const long long[::1] size,
    const long long[::1] relevant, const long long[::1] ranks, const long long[::1] depth,
    double[:, ::1] out,
)
