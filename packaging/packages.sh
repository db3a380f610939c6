# SPDX-License-Identifier: MIT
# packages.sh - sourced by the set-up commands: which system packages they need, and getting those that are missing.
# shellcheck shell=bash

root=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.." && pwd)

say() {
    printf '%s\n' "$*" >&2
}

# One name a line. What only one module needs is asked for only where that module is.
build_packages() {
    printf '%s\n' gcc libc6-dev cmake ninja-build pkg-config libmicrohttpd-dev libgnutls28-dev libyajl-dev \
        libyaml-dev libpcre2-dev libssl-dev libcurl4-openssl-dev libsqlite3-dev libutf8proc-dev
    [ ! -d "$root/backends/mongo" ] || printf '%s\n' libmongoc-dev
    [ ! -d "$root/backends/redis" ] || printf '%s\n' libhiredis-dev
    [ ! -d "$root/plugins/opennotes" ] || printf '%s\n' libcmark-gfm-dev libcmark-gfm-extensions-dev
    [ ! -d "$root/plugins/cells" ] || printf '%s\n' libzmq3-dev
}

test_packages() {
    printf '%s\n' libcmocka-dev python3 python3-venv clang-14 libclang-rt-14-dev clang-format-14 clang-tidy-14 git redis-server haproxy dpkg-dev prometheus
    # The package is checked, and installed on a root of its own.
    printf '%s\n' lintian systemd debootstrap zsh
    # Two kernels, and Jupyter's own libraries to check notebooks with.
    [ ! -d "$root/plugins/cells" ] || printf '%s\n' python3-ipykernel python3-nbformat python3-nbclient xpython
}

as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    else
        sudo "$@"
    fi
}

# Installs those of the named packages that are missing. Touches neither apt nor the network when nothing is.
need_packages() {
    if ! command -v dpkg-query >/dev/null; then
        say "This is no Debian: the packages are not checked ($*)."
        return 0
    fi
    local -A have=()
    local name
    local -a missing=()
    while read -r name; do
        have[$name]=1
    done < <(dpkg-query -W -f='${db:Status-Status} ${Package}\n' "$@" 2>/dev/null | sed -n 's/^installed //p')
    for name in "$@"; do
        [ -n "${have[$name]:-}" ] || missing+=("$name")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    if [ "$(id -u)" -ne 0 ] && ! command -v sudo >/dev/null; then
        say "Packages are missing, and this user cannot install them. Root does, with:"
        say "    apt-get update && apt-get install -y --no-install-recommends ${missing[*]}"
        return 1
    fi
    local begun=$SECONDS
    say "Installing ${#missing[@]} packages (a minute or two): ${missing[*]}"
    as_root apt-get -qq update >&2 || say "The package lists could not be renewed; going on with those at hand."
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "${missing[@]}" >&2
    say "Installed in $((SECONDS - begun)) s."
}

# What takes less is not told of: seconds, and steps of a build.
told_s=5
told_steps=5

# build PRESET TARGET... [-- CMAKE-ARGUMENTS]: nothing on stdout; on stderr progress if it is a terminal, else a line before and
# after, and what fails.
build() {
    local preset=$1
    shift
    local -a targets=() options=()
    while [ $# -gt 0 ] && [ "$1" != "--" ]; do
        targets+=("$1")
        shift
    done
    [ $# -eq 0 ] || { shift; options=("$@"); }
    local folder=$root/build/$preset log=$root/build/$preset.log told=$told_s
    mkdir -p "$root/build"
    (
        # Two commands at once build one after the other.
        exec 9>"$root/build/.$preset.lock"
        flock 9
        # A build folder that was copied or moved knows the wrong paths: make it again.
        if [ -f "$folder/CMakeCache.txt" ] &&
            ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "$folder/CMakeCache.txt"; then
            rm -rf "$folder"
        fi
        begun=$SECONDS
        if [ ! -f "$folder/build.ninja" ]; then
            told=0
            say "Building $preset in build/$preset (one to three minutes the first time) ..."
            cmake -S "$root" --preset "$preset" "${options[@]}" >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
        fi
        if [ -t 2 ] && [ "$(ninja -n -C "$folder" "${targets[@]}" | grep -c '^\[')" -gt $told_steps ]; then
            NINJA_STATUS='[%f of %t steps, %e s] ' ninja -C "$folder" "${targets[@]}" >&2 9>&- || exit 1
        else
            ninja -C "$folder" --quiet "${targets[@]}" >"$log" 2>&1 9>&- || { cat "$log" >&2; exit 1; }
        fi
        [ $((SECONDS - begun)) -lt "$told" ] || say "Built $preset in $((SECONDS - begun)) s."
    )
}

# serve_for USER: as root, what a gateway that becomes this user needs: the user, its data, a program that it can read. Changes
# $program where that is in a folder that is closed to the user.
serve_for() {
    local user=$1 copy=${NOTEGATE_TEST_COPY:-/opt/notegate} begun=$SECONDS told=
    local data=${NOTEGATE_DATA_DIR:-/var/lib/notegate}
    if [ "$user" = notegate ] && ! getent passwd notegate >/dev/null; then
        told=1
        say "Making the system user notegate."
        useradd --system --user-group --home-dir /var/lib/notegate --no-create-home --shell /usr/sbin/nologin \
            --comment "notegate tool gateway" notegate
    fi
    # Data that an earlier gateway stored as root; not while one serves. Links are not followed: agents may have made
    # them.
    if [ -f "$data/notegate.lock" ] && [ "$(stat -c %u "$data")" -eq 0 ] &&
        flock -n "$data/notegate.lock" chown -Rh "$user:" "$data"; then
        say "$data belongs to the user $user from now on."
    fi
    if ! setpriv --reuid "$user" --regid "$(id -g "$user")" --init-groups \
        test -r "$program/modules/plugins" -a -x "$program/bin/notegate"; then
        told=1
        say "The user $user cannot read $program: running a copy in $copy."
        rm -rf "$copy"
        mkdir -p "$copy"
        chmod 0755 "$copy"
        cp -r "$program/bin" "$program/modules" "$copy"
        chmod -R u+rwX,go=rX "$copy"
        program=$copy
    fi
    [ -z "$told" ] || say "Made ready for the user $user in $((SECONDS - begun)) s."
}
