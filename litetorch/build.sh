#!/bin/sh
# build.sh BUILD_DIR - compiles what a candidate's process needs inside PyTorch (litetorch/runtime), against the PyTorch that
# runner/ will use: libfronttorch.so for a process without a device, libcudatorch.so with a real one.
# Without PyTorch it says so and succeeds: 'make' works before 'make setup'.
set -e
B=$1
data=${MUSACODER_DATA_DIR:-${XDG_DATA_HOME:-$HOME/.local/share}/musacoder}
py=$MUSACODER_PYTHON
[ -n "$py" ] || { [ -f "$data/python" ] && py=$(head -n 1 "$data/python"); } || py=$data/venv/bin/python
here=$(dirname "$0")
# Asking torch itself would import it (seconds): its folder is enough.
torch=$("$py" -c 'import importlib.util as u; print(u.find_spec("torch").submodule_search_locations[0])' 2>/dev/null) || {
    echo "devices inside PyTorch not built: no PyTorch yet; run 'make setup'" >&2
    exit 0
}
version=$(sed -n "s/^__version__ = '\(.*\)'/\1/p" "$torch/version.py")
cuda=$B/lib/libcudatorch.so front=$B/lib/libfronttorch.so obj=$B/obj/litetorch
mkdir -p "$obj" "$B/lib"
if [ -f "$cuda" ] && [ -f "$front" ] && [ "$(cat "$obj/version" 2>/dev/null)" = "$version" ] &&
   [ -z "$(find "$here/runtime" "$here/front" "$here/include/litetorch/abi.h" "$0" -newer "$cuda")" ]; then
    exit 0
fi
echo "building the devices inside PyTorch $version"
abi=1
grep -q 'GLIBCXX_USE_CXX11_ABI=0' "$torch/share/cmake/Torch/TorchConfig.cmake" 2>/dev/null && abi=0
# NDEBUG: classes of torch have other members without it, and the library was built with it.
cxxflags="-std=c++17 -O1 -g1 -fPIC -DNDEBUG -D_GLIBCXX_USE_CXX11_ABI=$abi -isystem $torch/include \
  -isystem $torch/include/torch/csrc/api/include -DLT_TORCH_VERSION=\"$version\""
compile() { ${CXX:-g++} $cxxflags -c "$here/runtime/$1.cc" -o "$obj/$1.o"; }
compile_front() { ${CXX:-g++} $cxxflags -I"$here/../src" -c "$here/front/$1.cc" -o "$obj/front_$1.o"; }
link() { # OUT OBJECT...
    out=$1
    shift
    ${CXX:-g++} -shared -Wl,-soname,"$(basename "$out")" -o "$out.tmp" "$@" -L"$torch/lib" -L"$B/lib" $libs -ltorch_cpu -lc10 -Wl,-rpath,"$torch/lib" \
        -Wl,-rpath,'$ORIGIN' -ldl
    mv "$out.tmp" "$out"
}
compile api & a=$!
compile trace & b=$!
wait $a && wait $b
compile cuda & a=$!
compile lookups & b=$!
wait $a && wait $b
compile watch
compile_front device & a=$!
compile_front plumbing & b=$!
wait $a && wait $b
compile_front evidence
libs=-lfront
link "$front" "$obj/api.o" "$obj/front_device.o" "$obj/front_plumbing.o" "$obj/front_evidence.o"
libs=
link "$cuda" "$obj/api.o" "$obj/trace.o" "$obj/lookups.o" "$obj/watch.o" "$obj/cuda.o"
echo "$version" >"$obj/version"
