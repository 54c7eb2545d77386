#!/bin/sh
# Installs the package into a directory of its own, and compiles and runs the programs of README.md from there: with
# CMake and with pkg-config, shared and static. package.sh BUILD SOURCE
set -eu
build=$1
source=$2
dir=$(mktemp -d "${TMPDIR:-/tmp}/cg-package-XXXXXX")
trap 'rm -rf "$dir"' EXIT

cmake --install "$build" --prefix "$dir/installed" >/dev/null

# The n-th block of a language in README.md.
block() {
    awk -v fence="\`\`\`$1" -v wanted="$2" '
        $0 == fence { seen++; inside = seen == wanted; next }
        /^```$/ { inside = 0 }
        inside' "$source/README.md"
}
mkdir "$dir/project"
block c 1 >"$dir/project/smallest.c"
block cpp 1 >"$dir/project/smallest.cpp"
block cmake 1 >"$dir/project/CMakeLists.txt"
for file in smallest.c smallest.cpp CMakeLists.txt; do
    [ -s "$dir/project/$file" ] || { echo "README.md has no block for $file"; exit 1; }
done

run() {
    rm -rf "$dir/world" && (cd "$dir" && "$@")
    (cd "$dir" && "$@")
}

echo "CMake"
cmake -S "$dir/project" -B "$dir/cmake" -DCMAKE_PREFIX_PATH="$dir/installed" >/dev/null
cmake --build "$dir/cmake" >/dev/null
run "$dir/cmake/smallest"
sed 's/CherryGrove::cherrygrove/CherryGrove::static/' "$dir/project/CMakeLists.txt" >"$dir/CMakeLists.txt"
mv "$dir/CMakeLists.txt" "$dir/project/CMakeLists.txt"
cmake -S "$dir/project" -B "$dir/static" -DCMAKE_PREFIX_PATH="$dir/installed" >/dev/null
cmake --build "$dir/static" >/dev/null
run "$dir/static/smallest"

if ! command -v pkg-config >/dev/null; then
    echo "pkg-config is missing, so its part is left out"
    exit 0
fi
export PKG_CONFIG_PATH="$dir/installed/lib/pkgconfig"
echo "pkg-config, shared"
# shellcheck disable=SC2046
cc -std=c11 -o "$dir/shared_c" "$dir/project/smallest.c" $(pkg-config --cflags --libs cherrygrove)
run "$dir/shared_c"
echo "pkg-config, static"
# -l:libcherrygrove.a takes the archive, although the shared library lies beside it.
# shellcheck disable=SC2046
cc -std=c11 -o "$dir/static_c" "$dir/project/smallest.c" \
    $(pkg-config --static --cflags --libs cherrygrove | sed 's/-lcherrygrove/-l:libcherrygrove.a/')
run "$dir/static_c"
