#!/bin/sh
# build.sh BUILD_DIR - compiles the simulated device (litetorch/runtime) against the PyTorch that runner/ will use.
# Without PyTorch it says so and succeeds: 'make' works before 'make setup'.
set -e
B=$1
data=${MUSACODER_DATA_DIR:-${XDG_DATA_HOME:-$HOME/.local/share}/musacoder}
py=$MUSACODER_PYTHON
[ -n "$py" ] || { [ -f "$data/python" ] && py=$(head -n 1 "$data/python"); } || py=$data/venv/bin/python
here=$(dirname "$0")
# Asking torch itself would import it (seconds): its folder is enough.
torch=$("$py" -c 'import importlib.util as u; print(u.find_spec("torch").submodule_search_locations[0])' 2>/dev/null) || {
    echo "simulated device not built: no PyTorch yet; run 'make setup'" >&2
    exit 0
}
version=$(sed -n "s/^__version__ = '\(.*\)'/\1/p" "$torch/version.py")
out=$B/lib/libsimtorch.so
mkdir -p "$B/obj/litetorch" "$B/lib"
if [ -f "$out" ] && [ "$(cat "$B/obj/litetorch/version" 2>/dev/null)" = "$version" ] &&
   [ -z "$(find "$here/runtime" "$here/include/litetorch/abi.h" "$0" -newer "$out")" ]; then
    exit 0
fi
echo "building the simulated device for PyTorch $version"
abi=1
grep -q 'GLIBCXX_USE_CXX11_ABI=0' "$torch/share/cmake/Torch/TorchConfig.cmake" 2>/dev/null && abi=0
# NDEBUG: classes of torch have other members without it, and the library was built with it.
cxxflags="-std=c++17 -O1 -g1 -fPIC -DNDEBUG -D_GLIBCXX_USE_CXX11_ABI=$abi -isystem $torch/include \
  -isystem $torch/include/torch/csrc/api/include -DSIM_TORCH_VERSION=\"$version\""
${CC:-cc} -std=c11 -D_GNU_SOURCE -O2 -g -fPIC -c "$here/runtime/arena.c" -o "$B/obj/litetorch/arena.o"
${CXX:-g++} $cxxflags -c "$here/runtime/device.cc" -o "$B/obj/litetorch/device.o" & a=$!
${CXX:-g++} $cxxflags -c "$here/runtime/api.cc" -o "$B/obj/litetorch/api.o" & b=$!
wait $a && wait $b
${CXX:-g++} -shared -o "$out.tmp" "$B/obj/litetorch/"*.o -L"$torch/lib" -ltorch_cpu -lc10 -Wl,-rpath,"$torch/lib" -ldl
mv "$out.tmp" "$out"
echo "$version" >"$B/obj/litetorch/version"
