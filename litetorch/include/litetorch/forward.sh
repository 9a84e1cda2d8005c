#!/bin/sh
# forward.sh OUT - makes the headers that forward.txt lists, in the folders OUT/lite and OUT/sim.
set -e
awk -v out="$1" '
    /^(lite|sim) / {
        for (at = 2; $at != "="; at++) ;
        for (i = at + 1; i <= NF; i++) {
            path = out "/" $1 "/" $i; last = folder = path
            sub(".*/", "", last); sub("/[^/]*$", "", folder)
            if (!made[folder]++ && system("mkdir -p \"" folder "\"")) exit 1
            print "#pragma once" >path
            for (k = 2; k < at; k++) { what = $k; sub("[*]", last, what); print "#include " what >path }
            close(path)
        }
    }' "$(dirname "$0")/forward.txt"
