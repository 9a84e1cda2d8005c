/* passk.c - see passk.h. */
#include "bench/passk.h"

#include <math.h>

double pass_at_k(int n, int c, int k)
{
    double miss = 1; /* C(n-c, k) / C(n, k) as a product: no factorial overflows */

    if (c < 0 || c > n || k < 1 || k > n)
        return NAN;
    if (n - c < k)
        return 1;
    for (int i = n - c + 1; i <= n; i++)
        miss *= 1 - (double)k / i;
    return 1 - miss;
}

double avg_at_n(int n, int c)
{
    return n > 0 ? (double)c / n : NAN;
}

bool is_faster_than(bool passed, double speedup, double min)
{
    return passed && speedup > min;
}

double suite_pass_at_k(const struct task_counts *t, int n_tasks, int k)
{
    double sum = 0;
    int m = 0;

    for (int i = 0; i < n_tasks; i++)
        if (t[i].n > 0) {
            sum += pass_at_k(t[i].n, t[i].passed, k < t[i].n ? k : t[i].n);
            m++;
        }
    return m ? sum / m : NAN;
}

double suite_avg(const struct task_counts *t, int n_tasks)
{
    double sum = 0;
    int m = 0;

    for (int i = 0; i < n_tasks; i++)
        if (t[i].n > 0) {
            sum += avg_at_n(t[i].n, t[i].passed);
            m++;
        }
    return m ? sum / m : NAN;
}

double suite_faster_rate(const struct task_counts *t, int n_tasks)
{
    double faster = 0, n = 0;

    for (int i = 0; i < n_tasks; i++) {
        faster += t[i].faster;
        n += t[i].n;
    }
    return n > 0 ? faster / n : NAN;
}
