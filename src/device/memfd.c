/* memfd.c - memory that can be handed to another process as a descriptor. Its size is sealed: who maps it cannot be
 * killed by a peer that cuts it short. */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "device/device_backend.h"

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

int memfd_open(size_t size, int *ret_fd, struct err *e)
{
    int fd = memfd_create("buffer", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (fd < 0)
        return err_sys(e, "cannot make shared memory");
    if (ftruncate(fd, (off_t)size) < 0 || fcntl(fd, F_ADD_SEALS, SEALS) < 0) {
        err_sys(e, "cannot make %zu bytes of shared memory", size);
        close(fd);
        return -1;
    }
    *ret_fd = fd;
    return 0;
}

int memfd_map(int fd, size_t size, void **ret, struct err *e)
{
    struct stat st;
    int seals = fcntl(fd, F_GET_SEALS);
    void *p;

    if (fstat(fd, &st) < 0)
        return err_sys(e, "cannot map shared memory");
    if (seals < 0 || (seals & F_SEAL_SHRINK) == 0)
        return err_set(e, ERR_INPUT, "shared memory that its owner could cut short is not accepted");
    if (st.st_size < 0 || (size_t)st.st_size < size)
        return err_set(e, ERR_INPUT, "shared memory of %lld bytes where %zu were announced", (long long)st.st_size,
                       size);
    p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED)
        return err_sys(e, "cannot map %zu bytes of shared memory", size);
    *ret = p;
    return 0;
}
