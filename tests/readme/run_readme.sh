#!/bin/sh
# Holds README.md to its word: its C program compiles and prints what the page shows, its command
# lines run, its links and make targets exist.
# usage: run_readme.sh SOURCE_DIR BUILD_DIR WORK_DIR CC LIBRARY_DIR
set -eu
source_dir=$1 build_dir=$2 work_dir=$3 cc=$4 library_dir=$5
readme=$source_dir/README.md

fail() {
    echo "run_readme.sh: $*" >&2
    exit 1
}

# Prints the lines of the page's blocks of one language.
print_blocks() {
    awk -v open="^\`\`\`$1\$" '$0 ~ open { on = 1; next } /^```$/ { on = 0 } on' "$readme"
}

rm -rf "$work_dir"
mkdir -p "$work_dir"
cd "$work_dir"

print_blocks c >product.c
print_blocks text >expected.txt
[ -s product.c ] || fail "README.md has no C program"
[ -s expected.txt ] || fail "README.md does not show what its program prints"
"$cc" -std=c11 -Wall -Wextra -Werror -I"$source_dir/include" product.c -L"$library_dir" -ltilegemm \
    -Wl,-rpath,"$library_dir" -o product
./product >output.txt
diff expected.txt output.txt || fail "the program of README.md prints something else"

mkdir build
ln -s "$build_dir/tilegemm" build/tilegemm

# Writes the files of the page's commands: a text matrix times the identity.
# $1 file, $2 rows, $3 columns
make_npy() {
    awk -v rows="$2" -v cols="$3" 'BEGIN {
        print "%%MatrixMarket matrix array real general\n" rows, cols
        for (i = 0; i < rows * cols; i++) print i % 7 - 3
    }' >matrix.mtx
    awk -v cols="$3" 'BEGIN {
        print "%%MatrixMarket matrix coordinate integer general\n" cols, cols, cols
        for (i = 1; i <= cols; i++) print i, i, 1
    }' >identity.mtx
    build/tilegemm multiply matrix.mtx identity.mtx -o "$1" >command.log || fail "cannot make $1"
}
make_npy a.npy 7 5
make_npy b.npy 5 6
make_npy q.npy 3 5
make_npy k.npy 4 5
make_npy v.npy 4 6

print_blocks sh | sed 's/ *#.*//' >commands.txt
grep -q '^build/tilegemm multiply ' commands.txt || fail "README.md shows no tilegemm multiply"
while IFS= read -r line; do
    case "$line" in
    build/tilegemm*)
        sh -c "$line" </dev/null >command.log 2>&1 || {
            cat command.log >&2
            fail "'$line' of README.md failed"
        }
        ;;
    make*)
        make -C "$source_dir" -n "${line#make }" >command.log 2>&1 ||
            fail "'$line' of README.md: the Makefile has no such target"
        ;;
    esac
    echo "ok $line"
done <commands.txt
[ -s d.npy ] || fail "the page's multiply wrote no d.npy"

grep -o '](\([^)]*\))' "$readme" | sed 's/](\(.*\))/\1/' | while IFS= read -r link; do
    case "$link" in
    http*) ;;
    *) [ -e "$source_dir/${link%%#*}" ] || fail "README.md links to $link, which is no file" ;;
    esac
done
