# SPDX-License-Identifier: MIT
"""A Debian of its own in a folder: made once by debootstrap, copied for each test, which runs commands there as its
users. One has what the package asks for: the test installs the package, and reads the unit as systemd would. One is as
clean as a newcomer's.

As a program, installed_support.py BUILD makes both, for the package of that build: packaging/test does so before it
measures."""

import fcntl
import hashlib
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

from conftest import SOURCE, eventually
from servers import free_port

# Outside the clone, as all that packaging/test downloads.
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "notegate-test"
SUITE = "bookworm"
MIRROR = "http://deb.debian.org/debian"
# Debian's packages may come slowly.
MAKE_SECONDS = 900
COMMAND_SECONDS = 120
DATA = "/var/lib/notegate"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# /proc, for the time of one command, in a name space that ends with it.
ENTER = 'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"'


def run(*words, seconds=COMMAND_SECONDS, **more):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=seconds, check=False, **more)
    assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def mirror():
    """The one that this machine's own packages come from."""
    places = [pathlib.Path("/etc/apt/sources.list"), *pathlib.Path("/etc/apt/sources.list.d").glob("*")]
    found = re.search(r"https?://\S+/debian/?(?=\s)", "\n".join(place.read_text() for place in places if place.is_file()))
    return found.group(0) if found else MIRROR


def debian(names, later=()):
    """The folder of a Debian with these packages. Those for later are not installed, but apt has them all at hand."""
    key = "\n".join([SUITE, *names, *(f"+{name}" for name in later)])
    home = CACHE / f"debian-{hashlib.sha256(key.encode()).hexdigest()[:16]}"
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(f"{home}.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (home / "installed").exists():
            shutil.rmtree(home, ignore_errors=True)
            home.mkdir()
            run("debootstrap", "--variant=minbase", "--include=" + ",".join(names), SUITE, home / "root", mirror(), seconds=MAKE_SECONDS)
            run("chroot", home / "root", "apt-get", "clean")
            if later:
                fetch = "apt-get -qq update && apt-get -qq install -y --download-only --no-install-recommends " + " ".join(later)
                run("chroot", home / "root", "sh", "-c", fetch, seconds=MAKE_SECONDS)
        (home / "installed").touch()
    return home / "root"


def base(package):
    """The folder of a Debian that has all but the package itself."""
    depends = ",".join(run("dpkg-deb", "-f", package, field).strip() for field in ("Depends", "Recommends"))
    names = set(re.findall(r"[a-z0-9][a-z0-9.+-]+(?= |,|$)", re.sub(r"\([^)]*\)", "", depends)))
    return debian(sorted(names | {"curl", "sudo"}))


def clean():
    """The folder of a Debian as a newcomer has it: what packaging/run installs is not there yet, but apt has it."""
    packages = run("bash", "-c", ". packaging/packages.sh && build_packages", cwd=SOURCE).split()
    return debian(["ca-certificates", "ccache", "curl", "sudo"], sorted(packages))


class Machine:
    """A copy of a Debian with two users, ada (with all rights by sudo) and bob (without). `more`: variables of commands."""

    def __init__(self, lower, folder, **more):
        self.root = folder / "machine"
        self.environ = {"PATH": PATH, "HOME": "/root", "USER": "root", "LOGNAME": "root", "LANG": "C.UTF-8", **more}
        self.mounted = False
        self._copy(lower, folder)
        (self.root / "etc" / "hosts").write_text(f"127.0.0.1 localhost {os.uname().nodename}\n")
        self.service = None
        self.port = free_port()
        self.command("root", "useradd --create-home ada && useradd --create-home bob && "
                             "echo 'ada ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/ada")

    def _copy(self, lower, folder):
        """Laid over the base, which takes no time; copied where this machine does not allow that."""
        layers = [folder / name for name in ("upper", "work")]
        for place in (self.root, *layers):
            place.mkdir()
        options = f"lowerdir={lower},upperdir={layers[0]},workdir={layers[1]}"
        done = subprocess.run(["mount", "-t", "overlay", "-o", options, "none", self.root], capture_output=True, check=False)
        self.mounted = done.returncode == 0
        if not self.mounted:
            run("cp", "-a", "--reflink=auto", f"{lower}/.", self.root, seconds=MAKE_SECONDS)

    def _words(self, user, text, cwd):
        whole = f"cd {shlex.quote(cwd)} && {text}"
        if user != "root":
            # As sudo and su leave it: the folder of the caller, which the user may have no right to enter.
            whole = f"cd {shlex.quote(cwd)} && exec setpriv --reuid={user} --regid={user} --init-groups env " \
                    f"HOME=$(getent passwd {user} | cut -d: -f6) USER={user} LOGNAME={user} bash -c {shlex.quote(text)}"
        return ["unshare", "--mount", "sh", "-c", ENTER, self.root, "bash", "-c", whole]

    def command(self, user, text, cwd="/", status=0, seconds=COMMAND_SECONDS):
        """A line of shell, as a login of that user would run it; its output. status None: any."""
        done = subprocess.run(self._words(user, text, cwd), capture_output=True, text=True, timeout=seconds,
                              check=False, stdin=subprocess.DEVNULL, env=self.environ)
        assert status is None or done.returncode == status, f"{user} in {cwd}: {text}\n{done.stdout}\n{done.stderr}"
        return done

    def install(self, package, *options):
        shutil.copy(package, self.root / "tmp" / "notegate.deb")
        return self.command("root", "DEBIAN_FRONTEND=noninteractive dpkg " + " ".join(options) + " -i /tmp/notegate.deb")

    def configure(self, *lines):
        path = self.root / "etc" / "notegate" / "notegate.yaml"
        path.write_text(path.read_text() + "".join(f"{line}\n" for line in lines))

    # ---- the unit

    def unit(self, name="notegate.service"):
        """Its settings, as lists of values."""
        values = {}
        for line in (self.root / "lib" / "systemd" / "system" / name).read_text().splitlines():
            if "=" in line and not line.startswith(("#", ";")):
                key, value = line.split("=", 1)
                values.setdefault(key, []).append(value)
        return values

    def as_unit(self, name="notegate.service"):
        """The words that start what the unit starts, and its environment."""
        unit = self.unit(name)
        user, group = unit["User"][0], unit["Group"][0]
        entry = next(line.split(":") for line in (self.root / "etc" / "passwd").read_text().splitlines() if line.startswith(f"{user}:"))
        states = unit["StateDirectory"][0].split()
        for state in states:
            folder = self.root / "var" / "lib" / state
            folder.mkdir(mode=int(unit["StateDirectoryMode"][0], 8), exist_ok=True)
            os.chown(folder, int(entry[2]), int(entry[3]))
        environ = {"PATH": PATH, "LANG": "C.UTF-8", "HOME": entry[5], "USER": user, "LOGNAME": user, "SHELL": entry[6],
                   "STATE_DIRECTORY": ":".join(f"/var/lib/{state}" for state in states)}
        for place in unit.get("EnvironmentFile", []):
            path = self.root / place.lstrip("-/")
            if path.exists() or not place.startswith("-"):
                environ.update(line.split("=", 1) for line in path.read_text().splitlines() if "=" in line and line[0] != "#")
        words = ["setpriv", f"--reuid={user}", f"--regid={group}", "--init-groups", "--no-new-privs", "--bounding-set=-all", "--inh-caps=-all",
                 *shlex.split(unit["ExecStart"][0])]
        return ["unshare", "--mount", "sh", "-c", f"umask {unit['UMask'][0]} && {ENTER}", str(self.root), *words], environ

    def start(self):
        self._serve(*self.as_unit())

    def serve(self, user, text, cwd="/", seconds=COMMAND_SECONDS):
        """The gateway that a line of shell starts; what it has printed when it listens."""
        return self._serve(self._words(user, text, cwd), self.environ, seconds)

    def _serve(self, words, environ, seconds=COMMAND_SECONDS):
        path = self.root / "tmp" / "journal"
        with open(path, "w", encoding="utf-8") as journal:
            self.service = subprocess.Popen(words, env=environ, cwd="/", stdin=subprocess.DEVNULL, stdout=journal, stderr=journal)

        def told():
            assert self.service.poll() is None, path.read_text()
            return "listening on" in path.read_text()

        eventually(told, seconds, "the line that it listens")
        return path.read_text()

    def stop(self):
        if self.service is not None:
            self.service.terminate()
            try:
                self.service.wait(COMMAND_SECONDS)
            finally:
                self.service.kill()
            self.service = None

    def stores(self):
        """Every store on the machine, by its directory."""
        return sorted("/" + str(path.parent.relative_to(self.root)) for path in self.root.rglob("notegate.db"))

    def close(self):
        self.stop()
        if self.mounted:
            run("umount", "-l", self.root)
        shutil.rmtree(self.root, ignore_errors=True)


def build_package(build, folder):
    """The package of a build."""
    return pathlib.Path(run(SOURCE / "packaging" / "debian" / "build", build, folder).strip())


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        base(build_package(sys.argv[1], place))
    clean()
