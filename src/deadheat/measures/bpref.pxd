cdef double preference(double a, double m) noexcept
cdef (double, double) preference_moments(long long r, long long n, long long a, double m) noexcept

cpdef void preference_views(
    const long long[::1] in_queries, const long long[::1] in_groups, const double[::1] grade,
    const long long[::1] rank, const long long[::1] order, const long long[::1] retrieved,
    double rel, const double[::1] divisor, const double[::1] most, double[:, ::1] out,
)
