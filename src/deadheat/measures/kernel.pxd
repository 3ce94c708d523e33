cpdef void fill_offsets(const long long[::1] index, long long[::1] out)

cpdef (long long, bint) select_relevant(
    const long long[::1] in_queries, const long long[::1] in_groups, const double[::1] grade,
    const long long[::1] rank, double lowest, long long[::1] relevant, long long[::1] ranks,
)
