/* fdpass.h - one message over a SOCK_SEQPACKET socket, with descriptors riding along. */
#ifndef MC_EXEC_FDPASS_H
#define MC_EXEC_FDPASS_H

#include <stddef.h>
#include <sys/types.h>

#define FDPASS_MAX 4

/* 0, or -1 with errno. */
int fdpass_send(int sock, const void *data, size_t n, const int *fds, int n_fds);
/* Bytes of the message (0: closed), or -1 with errno. Unused entries of fds become -1; all are close-on-exec. flags:
 * those of recvmsg. */
ssize_t fdpass_recv(int sock, void *data, size_t n, int fds[FDPASS_MAX], int flags);
void fdpass_close(int fds[FDPASS_MAX]);

#endif
