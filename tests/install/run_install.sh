#!/bin/sh
# Installs a build into a fresh prefix, removes and restores it, moves it, and builds
# tests/install/program there through find_package(tilegemm) and through pkg-config, each against
# the shared and the static library, and a distributed product where the build has that part.
# usage: run_install.sh BUILD_DIR WORK_DIR CMAKE CC VERSION [MPICC]
set -eu
build_dir=$1 work_dir=$2 cmake=$3 cc=$4 version=$5 mpicc=${6-}
soname=libtilegemm.so.${version%%.*}
source_dir=$(cd "$(dirname "$0")/../.." && pwd)
program_dir=$(cd "$(dirname "$0")/program" && pwd)

fail() {
    echo "run_install.sh: $*" >&2
    exit 1
}

rm -rf "$work_dir"
mkdir -p "$work_dir"
cd "$work_dir"
"$cmake" --install "$build_dir" --prefix "$work_dir/first" >install.log
for file in share/man/man1/tilegemm.1 share/man/man1/tilegemm-bench.1 share/man/man3/tg_multiply.3 \
    share/man/man3/tg_make_problem.3 share/doc/tilegemm/README.md \
    share/doc/tilegemm/docs/ladder.md \
    share/bash-completion/completions/tilegemm share/zsh/site-functions/_tilegemm \
    share/fish/vendor_completions.d/tilegemm.fish; do
    [ -s "first/$file" ] || fail "$file is not installed"
done

# Removing the installed files leaves what others put beside them.
cp "$build_dir/install_manifest.txt" installed.txt
cp -r first whole
: >first/share/doc/tilegemm/note
"$cmake" -DMANIFEST=installed.txt -P "$source_dir/cmake/uninstall.cmake" >uninstall.log 2>&1
left=$(find first -type f -o -type l)
[ "$left" = first/share/doc/tilegemm/note ] || fail "left after uninstall: $left"
! "$cmake" -DMANIFEST=installed.txt -P "$source_dir/cmake/uninstall.cmake" >uninstall.log 2>&1 ||
    fail "a second uninstall does not say that nothing is installed"
# A folder's name may have characters that file(GLOB) takes for patterns.
mkdir -p "odd[x]/tilegemm"
: >"odd[x]/tilegemm/ours"
: >"odd[x]/tilegemm/theirs"
echo "$work_dir/odd[x]/tilegemm/ours" >installed.txt
"$cmake" -DMANIFEST=installed.txt -P "$source_dir/cmake/uninstall.cmake" >uninstall.log 2>&1
[ "$(ls "odd[x]/tilegemm")" = theirs ] || fail "an uninstall removed a file that is not ours"
rm -r first
mv whole first
mv first moved # a path baked into the .cmake or .pc files would now be wrong
prefix=$work_dir/moved
lib_dir=$(dirname "$(find "$prefix" -name libtilegemm.a)")

readelf -d "$lib_dir/libtilegemm.so" | grep -qF "soname: [$soname]" ||
    fail "SONAME is not $soname"
[ -L "$lib_dir/$soname" ] || fail "no link $soname in $lib_dir"

foreign=$(readelf -d "$lib_dir/libtilegemm.so" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' |
    grep -vE '^(libc|libm|libdl|libpthread|ld-linux[^.]*)\.so' || true)
[ -z "$foreign" ] || fail "libtilegemm.so needs $foreign; more than libc, libm and dl"

# check_program PROGRAM COUNT fails unless the program needs the shared library COUNT times at run
# time, 0 or 1.
check_program() {
    needs=$(readelf -d "$1" | grep -c 'NEEDED.*libtilegemm\.' || true)
    [ "$needs" = "$2" ] || fail "$1 needs libtilegemm.so $needs times, expected $2"
    output=$(LD_LIBRARY_PATH=$lib_dir "$1") || fail "$1 failed"
    [ "$output" = "$version 1" ] || fail "$1 printed '$output', expected '$version 1'"
    echo "ok $(basename "$1")"
}

"$cmake" -S "$program_dir" -B outside -DCMAKE_PREFIX_PATH="$prefix" \
    -DCMAKE_C_COMPILER="$cc" >configure.log
"$cmake" --build outside >build.log
check_program "$work_dir/outside/with_tilegemm" 1
check_program "$work_dir/outside/with_tilegemm_static" 0

PKG_CONFIG_PATH=$lib_dir/pkgconfig
export PKG_CONFIG_PATH
# shellcheck disable=SC2046  # the flags are words
"$cc" "$program_dir/product.c" $(pkg-config --cflags --libs tilegemm) -o pkg_config_shared
check_program "$work_dir/pkg_config_shared" 1
# The linker prefers the shared library if it finds both.
static_libs=$(pkg-config --static --libs tilegemm | sed 's/-ltilegemm/-l:libtilegemm.a/')
# shellcheck disable=SC2046,SC2086
"$cc" "$program_dir/product.c" $(pkg-config --cflags tilegemm) $static_libs -o pkg_config_static
check_program "$work_dir/pkg_config_static" 0
[ "$(pkg-config --modversion tilegemm)" = "$version" ] || fail "pkg-config names another version"

[ -n "$mpicc" ] || exit 0
check_program "$work_dir/outside/with_tilegemm_mpi" 1
# shellcheck disable=SC2046  # the flags are words
"$mpicc" "$program_dir/distributed.c" $(pkg-config --cflags --libs tilegemm_mpi) -o pkg_config_mpi
check_program "$work_dir/pkg_config_mpi" 1
