cpdef void expected_reciprocal_rank_views(
    const long long[::1] in_queries, const long long[::1] in_groups, const long long[::1] above,
    const long long[::1] size, const long long[::1] rank, const long long[::1] order,
    const double[::1] stopping, const long long[::1] depth,
    double[::1] stopped, double[:, ::1] out,
)
