/* scan.h - inclusive_scan and exclusive_scan over a tile or a coalesced group. Rank 0 of an exclusive scan has T(). */
#ifndef SIMT_CG_SCAN_H
#define SIMT_CG_SCAN_H

#include "../cooperative_groups.h"

namespace cooperative_groups {

template <class G, class T, class F> T inclusive_scan(const G &g, T v, F f)
{
    for (unsigned d = 1; d < g.size(); d *= 2) {
        T below = g.shfl_up(v, d);

        if (g.thread_rank() >= d)
            v = f(below, v);
    }
    return v;
}
template <class G, class T> T inclusive_scan(const G &g, T v) { return inclusive_scan(g, v, plus<T>()); }

template <class G, class T, class F> T exclusive_scan(const G &g, T v, F f)
{
    T below = g.shfl_up(inclusive_scan(g, v, f), 1);

    return g.thread_rank() ? below : T();
}
template <class G, class T> T exclusive_scan(const G &g, T v) { return exclusive_scan(g, v, plus<T>()); }

/* The scan goes on from an atomic, to which the last rank adds the group's sum. */
template <class G, class A, class T> T inclusive_scan_update(const G &g, A &to, T v)
{
    T sum = inclusive_scan(g, v), before{};

    if (g.thread_rank() == g.size() - 1)
        before = to.fetch_add(sum);
    return g.shfl(before, g.size() - 1) + sum;
}
template <class G, class A, class T> T exclusive_scan_update(const G &g, A &to, T v)
{
    return inclusive_scan_update(g, to, v) - v;
}

} // namespace cooperative_groups

#endif
