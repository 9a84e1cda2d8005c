#!/bin/sh
# build.sh BUILD_DIR [LIB_DIR] - compiles a candidate's device inside PyTorch (litetorch/front), against the PyTorch
# that runner/ will use: BUILD_DIR/lib/libfronttorch.so. LIB_DIR is where libfront.so is (default: beside it).
# Without PyTorch it says so and succeeds: 'make' works before 'make setup'.
set -e
B=$1
libs=${2:-$B/lib}
data=${MUSACODER_DATA_DIR:-${XDG_DATA_HOME:-$HOME/.local/share}/musacoder}
py=$MUSACODER_PYTHON
[ -n "$py" ] || { [ -f "$data/python" ] && py=$(head -n 1 "$data/python"); } || py=$data/venv/bin/python
here=$(dirname "$0")
# Asking torch itself would import it (seconds): its folder is enough.
find_torch='import importlib.util as u; print(u.find_spec("torch").submodule_search_locations[0])'
torch=$("$py" -c "$find_torch" 2>/dev/null) || {
    echo "the device inside PyTorch is not built: no PyTorch yet; run 'make setup'" >&2
    exit 0
}
version=$(sed -n "s/^__version__ = '\(.*\)'/\1/p" "$torch/version.py")
front=$B/lib/libfronttorch.so obj=$B/obj/litetorch
mkdir -p "$obj" "$B/lib"
if [ -f "$front" ] && [ "$(cat "$obj/version" 2>/dev/null)" = "$version" ] &&
   [ -z "$(find "$here/front" "$here/include/litetorch/abi.h" "$0" -newer "$front")" ]; then
    exit 0
fi
echo "building the device inside PyTorch $version"
abi=1
grep -q 'GLIBCXX_USE_CXX11_ABI=0' "$torch/share/cmake/Torch/TorchConfig.cmake" 2>/dev/null && abi=0
# NDEBUG: classes of torch have other members without it, and the library was built with it.
cxxflags="-std=c++17 -O1 -g1 -fPIC -DNDEBUG -D_GLIBCXX_USE_CXX11_ABI=$abi -isystem $torch/include \
  -isystem $torch/include/torch/csrc/api/include -DLT_TORCH_VERSION=\"$version\""
compile() { ${CXX:-g++} $cxxflags -I"$here/../src" -c "$here/front/$1.cc" -o "$obj/front_$1.o"; }
compile api & a=$!
compile device & b=$!
wait $a && wait $b
compile plumbing
compile printed
${CXX:-g++} -shared -Wl,-soname,libfronttorch.so -o "$front.tmp" "$obj/front_api.o" "$obj/front_device.o" \
    "$obj/front_plumbing.o" "$obj/front_printed.o" -L"$torch/lib" -L"$libs" -lfront -ltorch_cpu -lc10 \
    -Wl,-rpath,"$torch/lib" \
    -Wl,-rpath,'$ORIGIN' ${2:+-Wl,-rpath,"$2"} -ldl
mv "$front.tmp" "$front"
echo "$version" >"$obj/version"
