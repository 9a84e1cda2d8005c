/* memory.c - see memory.h. */
#include "proc/memory.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define UNLIMITED ((uint64_t)1 << 60) /* v1 says "no limit" with a number about 2^63 */

/* The number after 'key' in a file of rows "key number"; without key the file's first word. False: it has none ("max"). */
static bool number_in(const char *root, const char *folder, const char *file, const char *key, uint64_t *ret)
{
    char *path = xasprintf("%s%s/%s", root, folder, file), line[256];
    FILE *f = fopen(path, "re");
    size_t n = key ? strlen(key) : 0;
    bool found = false;

    while (f && !found && fgets(line, sizeof line, f))
        found = (!key || (!strncmp(line, key, n) && strchr(" \t:", line[n]))) &&
                sscanf(line + n + (key && line[n] == ':'), "%" SCNu64, ret) == 1;
    if (f)
        fclose(f);
    free(path);
    return found;
}

/* What one cgroup has left; UNLIMITED without a limit of its own. */
static uint64_t left_in(const char *root, const char *folder, bool v2)
{
    uint64_t limit = 0, used = 0, idle = 0, active = 0;

    if (!number_in(root, folder, v2 ? "memory.max" : "memory.limit_in_bytes", NULL, &limit) || limit >= UNLIMITED ||
        !number_in(root, folder, v2 ? "memory.current" : "memory.usage_in_bytes", NULL, &used))
        return UNLIMITED;
    number_in(root, folder, "memory.stat", v2 ? "inactive_file" : "total_inactive_file", &idle);
    number_in(root, folder, "memory.stat", v2 ? "active_file" : "total_active_file", &active);
    used -= idle + active < used ? idle + active : used;
    return limit > used ? limit - used : 0;
}

/* The least that this group and those above it have. path: "/a/b" under mount; in a container it may not be there, its
 * own group being the mount itself. Cut short on return. */
static uint64_t least(const char *root, const char *mount, char *path, bool v2)
{
    uint64_t min = UNLIMITED, left;
    char *slash;

    for (;;) {
        char *folder = xasprintf("%s%s", mount, strcmp(path, "/") ? path : "");
        left = left_in(root, folder, v2);
        min = left < min ? left : min;
        free(folder);
        if (!(slash = strrchr(path, '/')))
            return min;
        *slash = 0;
    }
}

static uint64_t cgroup_left(const char *root)
{
    char *file = xasprintf("%s/proc/self/cgroup", root), line[512];
    FILE *f = fopen(file, "re");
    uint64_t min = UNLIMITED, left = UNLIMITED;

    while (f && fgets(line, sizeof line, f)) {
        char *list = strchr(line, ':'), *path = list ? strchr(list + 1, ':') : NULL;
        if (!path)
            continue;
        *path++ = 0;
        path[strcspn(path, "\n")] = 0;
        if (!list[1])
            left = least(root, "/sys/fs/cgroup", path, true);
        else if (strstr(list + 1, "memory"))
            left = least(root, "/sys/fs/cgroup/memory", path, false);
        min = left < min ? left : min;
    }
    if (f)
        fclose(f);
    free(file);
    return min;
}

uint64_t memory_left(const char *root)
{
    uint64_t kib = 0, group = cgroup_left(root);

    if (!number_in(root, "/proc", "meminfo", "MemAvailable", &kib))
        return group < UNLIMITED ? group : 0;
    return kib * 1024 < group ? kib * 1024 : group;
}
