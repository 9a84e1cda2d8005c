#!/bin/sh
# simt_on_gpu.sh - are the emulator's tests true on a GPU? Compiles tests/simt/kernels.cu with nvcc and runs its checks
# on the device: the same source, the same expected values. Needs nvcc and an NVIDIA GPU. Prints one line per check.
set -e
arch=${ARCH:-sm_90}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cat > "$dir/main.cu" <<'EOF'
#include "kernels.cu"
int main()
{
    int bad = 0;
    for (const check *c = checks; c->name; c++) {
        int wrong = c->run();
        printf("%-12s %s (%d wrong, last error %s)\n", c->name, wrong ? "DIFFERS" : "agrees", wrong,
               cudaGetErrorString(cudaGetLastError()));
        bad += wrong != 0;
    }
    return bad != 0;
}
EOF
nvcc -std=c++17 -arch="$arch" --extended-lambda -Itests/simt -o "$dir/main" "$dir/main.cu"
"$dir/main"
