/* mhd.h - what of libmicrohttpd is used, through a table: the library is loaded when a server starts. */
#ifndef MC_SERVE_MHD_H
#define MC_SERVE_MHD_H

#include <microhttpd.h>

#include "base/err.h"

#define MHD_CALLS(X)                                                                                         \
    X(MHD_start_daemon) X(MHD_stop_daemon) X(MHD_quiesce_daemon) X(MHD_get_daemon_info)                      \
    X(MHD_suspend_connection) X(MHD_resume_connection) X(MHD_lookup_connection_value)                        \
    X(MHD_get_connection_values) X(MHD_get_connection_info)                                                     \
    X(MHD_create_response_from_buffer) X(MHD_create_response_from_callback) X(MHD_destroy_response)          \
    X(MHD_add_response_header) X(MHD_queue_response)
#define MHD_MEMBER(name) __typeof__(&name) name;

struct mhd {
    MHD_CALLS(MHD_MEMBER)
};

extern struct mhd mhd;

#endif
