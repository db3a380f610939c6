#!/bin/sh
# SPDX-License-Identifier: MIT
# run.sh BUILD SOURCE - what an author outside the tree does: installs the SDK into a folder of its own, builds a
# plugin with nothing but pkg-config and cc, and loads it. Also compiles each header alone, as C and as C++, and the
# snippets of the guides. Needs a finished build.
set -eu

build=$1
source=$2
cc=${CC:-cc}
cxx=${CXX:-c++}
strict="-Wall -Wextra -Werror"
work=$(mktemp -d "${TMPDIR:-/tmp}/notegate-sdk-XXXXXX")
trap 'rm -rf "$work"' EXIT INT TERM

fail() {
    echo "sdk: $*" >&2
    exit 1
}

# ---- install ----
prefix=$work/prefix
cmake --install "$build" --prefix "$prefix" >"$work/install.log" 2>&1 || {
    cat "$work/install.log" >&2
    fail "cmake --install failed"
}
pc=$(find "$prefix" -name notegate.pc)
[ -n "$pc" ] || fail "notegate.pc is not installed"
PKG_CONFIG_PATH=$(dirname "$pc")
export PKG_CONFIG_PATH
[ "$(pkg-config --variable=prefix notegate)" = "$prefix" ] || fail "notegate.pc has another prefix than the installation"
flags=$(pkg-config --cflags notegate)
[ -f "$prefix/share/man/man1/notegate.1" ] || fail "the man page is not installed"
for installed in README.md $(cd "$source" && echo api/guides/*.md) plugins/README.md backends/README.md examples/hello.c examples/ram.c; do
    [ -f "$prefix/share/doc/notegate/$installed" ] || fail "$installed is not installed"
done
[ -f "$prefix/share/bash-completion/completions/notegate" ] || fail "the completion is not installed"
[ -n "$(pkg-config --variable=plugindir notegate)" ] || fail "notegate.pc has no plugindir"
[ -n "$(pkg-config --variable=backenddir notegate)" ] || fail "notegate.pc has no backenddir"
[ -z "$(pkg-config --libs notegate)" ] || fail "notegate.pc links something: modules must not"

# ---- every header alone ----
for header in "$prefix"/include/notegate/*.h; do
    name=$(basename "$header")
    printf '#define NG_ABI 1\n#include <notegate/%s>\n#include <notegate/%s>\n' "$name" "$name" >"$work/alone.c"
    cp "$work/alone.c" "$work/alone.cc"
    # shellcheck disable=SC2086
    $cc -std=c11 -Wpedantic $strict $flags -fsyntax-only "$work/alone.c" || fail "$name does not compile alone as C11"
    if command -v "$cxx" >/dev/null 2>&1; then
        # shellcheck disable=SC2086
        $cxx -std=c++17 $strict $flags -fsyntax-only "$work/alone.cc" || fail "$name does not compile alone as C++17"
    fi
done
printf '#include <notegate/plugin.h>\n' >"$work/bare.c"
# shellcheck disable=SC2086
if $cc -std=c11 $flags -fsyntax-only "$work/bare.c" 2>/dev/null; then
    fail "a module that does not say which ABI it is written for must not compile"
fi

# ---- the guides' snippets ----
# ```c is a whole file, ```c part is compiled behind the usual two lines, ```c from FILE stands so in that file.
snippets=0
for guide in plugins backends; do
    text=$source/$guide/README.md
    [ -f "$text" ] || continue
    mkdir "$work/$guide"
    awk -v dir="$work/$guide" '
        /^```c$/ { file = sprintf("%s/%02d.c", dir, ++n); next }
        /^```c part$/ {
            file = sprintf("%s/%02d.c", dir, ++n)
            header = dir ~ /backends$/ ? "backend" : "plugin"
            printf "#define NG_ABI 1\n#include <notegate/%s.h>\n", header > file
            next
        }
        /^```cpp$/ { file = sprintf("%s/%02d.cc", dir, ++n); next }
        /^```c from / { file = sprintf("%s/%02d.excerpt", dir, ++n); print $3 > file; next }
        /^```/ { if (file != "") close(file); file = ""; next }
        file != "" { print > file }' "$text"
    for excerpt in "$work/$guide"/*.excerpt; do
        [ -f "$excerpt" ] || continue
        whole=$source/$(head -n 1 "$excerpt")
        case $(cat "$whole") in
        *"$(tail -n +2 "$excerpt")"*) ;;
        *) fail "an excerpt in $guide/README.md is not what stands in $whole" ;;
        esac
        snippets=$((snippets + 1))
    done
    for snippet in "$work/$guide"/*.c; do
        [ -f "$snippet" ] || continue
        # shellcheck disable=SC2086
        $cc -std=c11 $strict -Wno-unused -fPIC $flags -c "$snippet" -o "$work/snippet.o" ||
            fail "a snippet of $guide/README.md does not compile: $(basename "$snippet")"
        snippets=$((snippets + 1))
    done
    for snippet in "$work/$guide"/*.cc; do
        if [ ! -f "$snippet" ] || ! command -v "$cxx" >/dev/null 2>&1; then
            continue
        fi
        # shellcheck disable=SC2086
        $cxx -std=c++17 $strict -shared -fPIC $flags -o "$work/plus.so" "$snippet" ||
            fail "a snippet of $guide/README.md does not compile as C++: $(basename "$snippet")"
        "$build/bin/notegate" check --data-dir "$work/plus" --set plugins="$work/plus.so" >"$work/check.txt" 2>&1 || {
            cat "$work/check.txt" >&2
            fail "notegate check does not accept the plugin in C++ of $guide/README.md"
        }
        snippets=$((snippets + 1))
    done
done
[ "$snippets" -gt 0 ] || fail "no snippet was found"

# ---- a plugin, built as the guide says ----
# shellcheck disable=SC2086
$cc $strict -shared -fPIC $flags -o "$work/hello.so" "$source/tests/sdk/hello/hello.c" || fail "hello.c does not build"
symbols=$(nm -D --defined-only "$work/hello.so" | awk '{print $NF}')
[ "$symbols" = ng_module ] || fail "hello.so must export ng_module alone, it exports: $symbols"

# ---- and loaded ----
notegate=$build/bin/notegate
run() {
    "$notegate" "$@" --data-dir "$work/data" --set plugins="$work/hello.so" --set hello.greeting=Servus
}
run check >"$work/check.txt" 2>&1 || {
    cat "$work/check.txt" >&2
    fail "notegate check does not accept hello.so"
}
[ "$(run call hello name=you)" = "Servus, you! (1)" ] || fail "the first greeting is wrong"
[ "$(run call hello name=you)" = "Servus, you! (2)" ] || fail "the second greeting forgot the first"
status=0
run call hello name=a-name-that-is-much-too-long-to-be-greeted-at-all >"$work/out.txt" 2>&1 || status=$?
[ "$status" = 1 ] || fail "a tool error must exit with 1, it was $status"
grep -q "at most 40 are allowed" "$work/out.txt" || fail "the plugin's own sentence is missing"

# ---- what an author gets wrong is told, by check and in the log ----
sed 's/return ng_reply(call, args);/(void)call; (void)args; return NG_OK;/' "$work"/plugins/01.c >"$work/silent.c"
sed 's/{\\"type\\":\\"object\\"}/{\\"type\\":\\"object\\",\\"propertis\\":{}}/' "$work"/plugins/01.c >"$work/slip.c"
for name in silent slip; do
    # shellcheck disable=SC2086
    $cc -shared -fPIC $flags -o "$work/$name.so" "$work/$name.c" || fail "$name.c does not build"
done
if "$notegate" check --data-dir "$work/wrong" --set plugins="$work/slip.so" >"$work/out.txt" 2>&1; then
    fail "notegate check accepts a misspelt keyword"
fi
grep -q 'did you mean "properties"' "$work/out.txt" || fail "notegate check does not say which keyword was meant"
if "$notegate" call echo --data-dir "$work/wrong" --set plugins="$work/silent.so" >"$work/out.txt" 2>&1; then
    fail "a success without an answer is none"
fi
grep -q '"level":"error".*echo (plugin echo) failed: .*succeeded without an answer' "$work/out.txt" || {
    cat "$work/out.txt" >&2
    fail "a fault of a plugin is not in the log at error"
}

# ---- a backend, built as its guide says, keeps what the contract asks for ----
# shellcheck disable=SC2086
$cc $strict -shared -fPIC $flags -o "$work/ram.so" "$source"/tests/sdk/backend_example/*.c || fail "the example backend does not build"
"$notegate" test-backend "$work/ram.so" >"$work/contract.txt" 2>&1 || {
    cat "$work/contract.txt" >&2
    fail "the example backend does not pass the contract suite"
}
grep -q "^skipped  documents: queries: test_search$" "$work/contract.txt" || fail "test-backend does not skip what is not offered"
grep -q "search() is not offered" "$work/contract.txt" || fail "test-backend does not name the member that is not offered"
# One that loses history, crashes on a condition and never answers is told so, case by case.
sed -e 's/found->doc.revision != revision)/found->doc.revision > revision + 1)/' "$source/tests/sdk/backend_example/ram.c" >"$work/ram.c"
sed -e 's/^static bool term_holds(.*/#include <stdlib.h>\n&/' -e 's/    bool any = false;.*/    bool any = false;\n    abort();/' \
    "$source/tests/sdk/backend_example/ram_query.c" >"$work/ram_query.c"
cp "$source/tests/sdk/backend_example/ram.h" "$work/"
# shellcheck disable=SC2086
$cc -shared -fPIC $flags -I "$work" -o "$work/bad.so" "$work/ram.c" "$work/ram_query.c" || fail "the broken backend does not build"
status=0
"$notegate" test-backend "$work/bad.so" >"$work/contract.txt" 2>&1 || status=$?
[ "$status" = 1 ] || fail "test-backend must exit with 1 where a case fails, it was $status"
grep -q "^FAILED   documents: queries: test_terms (Aborted)$" "$work/contract.txt" || fail "test-backend does not tell of a crash"
grep -q "^FAILED   documents: test_every_revision$" "$work/contract.txt" || fail "test-backend misses a revision that is another"
grep -q "^ok       documents: test_conditions$" "$work/contract.txt" || fail "test-backend fails what holds"
[ -x "$prefix/lib/notegate/notegate-contract" ] || fail "notegate-contract is not installed"

# A module for another ABI is refused before any of its code runs.
sed 's/^#define NG_ABI 1/#define NG_ABI 1\n#include <notegate\/abi.h>\n#undef NG_ABI\n#define NG_ABI 99/' \
    "$source/tests/sdk/hello/hello.c" >"$work/foreign.c"
# shellcheck disable=SC2086
if $cc -shared -fPIC $flags -o "$work/foreign.so" "$work/foreign.c" 2>/dev/null; then
    if "$notegate" check --data-dir "$work/data" --set plugins="$work/foreign.so" >"$work/out.txt" 2>&1; then
        fail "a module for ABI 99 was accepted"
    fi
    grep -q 99 "$work/out.txt" || fail "the refusal does not name the ABI"
fi
echo "sdk: headers, $snippets snippets and the hello plugin are fine"
