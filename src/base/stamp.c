/* stamp.c - see stamp.h. */
#include "base/stamp.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"

bool stamp_is_in(const char *folder)
{
    char *stamp = xasprintf("%s/" STAMP_NAME, folder);
    struct stat st;
    bool is = lstat(stamp, &st) == 0 && S_ISREG(st.st_mode); /* a folder or a link of that name is somebody's */

    free(stamp);
    return is;
}

int stamp_check_plain(const char *path, struct err *e)
{
    struct stat st;

    if (lstat(path, &st) < 0 || !S_ISLNK(st.st_mode))
        return 0;
    return err_set(e, ERR_INPUT, "'%s' is a link, and what it names may be somebody's; remove it", path);
}

/* Does the path, as it is spelt, lie in a folder with a stamp, or below one? */
static bool stamp_is_above(const char *path)
{
    char *at = xstrdup(path), *slash;
    bool is = false;

    while (!is && (slash = strrchr(at, '/'))) {
        *slash = 0;
        is = stamp_is_in(*at ? at : "/");
    }
    is = is || (*path != '/' && stamp_is_in("."));
    free(at);
    return is;
}

int stamp_check_links(const char *path, struct err *e)
{
    struct stat st;
    int rc = 0;

    for (size_t n = strcspn(path, "/"); rc == 0; n += 1 + strcspn(path + n + 1, "/")) {
        char *part = xstrndup(path, n);

        if (n && lstat(part, &st) == 0 && S_ISLNK(st.st_mode) && stamp_is_above(part))
            rc = stamp_check_plain(part, e);
        free(part);
        if (!path[n])
            break;
    }
    return rc;
}
