/* cmd_version.c - 'musacoder version': which program this is, what built it, and which Python it will use. */
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "cli/cli.h"

#include "build_info.h" /* BUILD_COMMIT, BUILD_COMPILER, BUILD_CUDA: made by the Makefile */

const char build_stamp[] = "musacoder " MC_VERSION " (commit " BUILD_COMMIT ")";

/* The command: how the program was built, and where its files and its Python are. */
static int version_run(const struct opts *o, struct err *e)
{
    char *python = path_python(NULL), *share = path_share(""), *lib = path_lib_folder();

    (void)o, (void)e;
    printf("%s\n"
           "built with  " BUILD_COMPILER ", CUDA " BUILD_CUDA "\n"
           "files       %s, %s\n"
           "Python      %s\n",
           build_stamp, share, lib ? lib : "no libraries; run 'make'", python ? python : "none; run 'musacoder setup'");
    free(python), free(share), free(lib);
    return EXIT_OK;
}

static const struct opt version_rows[] = {{0}};

const struct command cmd_version = {"version", "print the version, what built it, and the Python that it uses", "",
                                    "Prints version and commit, compiler and CUDA toolkit of the build, and where the\n"
                                    "program finds its files and its Python.\n", version_rows, version_run, 0};
