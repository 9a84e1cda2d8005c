/* memcpy_async.h - cooperative_groups::memcpy_async: the group's threads copy together, wait() ends their copies. */
#ifndef SIMT_CG_MEMCPY_ASYNC_H
#define SIMT_CG_MEMCPY_ASYNC_H

#include "../cooperative_groups.h"

namespace cooperative_groups {

template <class G> SIMT_INLINE void simt_copy_together(const G &g, char *to, const char *from, size_t n)
{
    size_t step = ((size_t)to | (size_t)from | n) % 16 == 0 ? 16 : ((size_t)to | (size_t)from | n) % 4 == 0 ? 4 : 1;
    for (size_t i = g.thread_rank() * step; i < n; i += g.size() * step)
        if (step == 1)
            to[i] = from[i];
        else
            simt_async_copy(to + i, from + i, (unsigned)step, (unsigned)step);
    simt_async_commit();
}
template <class G, class T, class F> SIMT_INLINE void memcpy_async(const G &g, T *to, const F *from, size_t n)
{
    simt_copy_together(g, (char *)to, (const char *)from, n);
}
template <class G> SIMT_INLINE void wait(const G &g)
{
    simt_async_wait(~0u);
    g.sync();
}
template <unsigned N, class G> SIMT_INLINE void wait_prior(const G &g)
{
    simt_async_wait(N);
    g.sync();
}

} // namespace cooperative_groups

#endif
