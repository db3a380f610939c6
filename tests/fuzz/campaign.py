# SPDX-License-Identifier: MIT
"""Targets in rounds, some at a time: what each run used and found, and the sums of all of them."""
import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import time

# Of one input. Long, as a run of the least priority may get no processor for a while.
TIMEOUT_SECONDS = 300
MEMORY_MB = 2048
# Ends of libFuzzer on request: by itself, before it began, or by a kill after no reaction.
STOPPED = (72, -signal.SIGINT, -signal.SIGKILL)
LOG_LINES = 40
# A run that was told to end and does not is ended.
END_SECONDS = 30


class Tally:
    """Results of the runs of one target."""

    def __init__(self):
        self.runs = self.seconds = self.added = self.found = 0
        self.coverage = self.edges = self.features = 0

    def read(self, log):
        """The log of one run; counts are added, coverage is the newest."""
        def last(pattern, otherwise):
            found = re.findall(pattern, log)
            return int(found[-1]) if found else otherwise
        self.runs += last(r"stat::number_of_executed_units:\s+(\d+)", 0)
        self.added += last(r"stat::new_units_added:\s+(\d+)", 0)
        self.coverage = last(r" cov: (\d+)", self.coverage)
        self.features = last(r" ft: (\d+)", self.features)
        self.edges = last(r"Loaded \d+ modules.*\((\d+) inline", self.edges)

    def line(self, name, inputs):
        return (f"{name:20} {self.runs:12} runs {self.seconds:9.1f} CPU s  coverage {self.coverage:5} of {self.edges:6} edges, "
                f"{self.features:6} features  {inputs:5} inputs, {self.added:5} new  {self.found:2} found")


class Campaign:
    def __init__(self, folder, corpora, targets, tell):
        self.folder, self.corpora, self.targets, self.tell = folder, corpora, targets, tell
        self.tallies = {target: Tally() for target in targets}
        self.running = {}  # by process id
        self.stopping = False

    # ---- one run

    def grown(self, target):
        return self.folder / "corpora" / target

    def artifacts(self, target):
        return self.folder / "artifacts" / target

    def program(self, target):
        return self.folder / "tests" / f"fuzz-{target}"

    def log(self, target):
        return self.folder / f"{target}.log"

    def inputs(self, target):
        return sum(1 for folder in (self.grown(target), self.corpora / target) for path in folder.iterdir() if path.is_file())

    def begin(self, target, seconds):
        self.grown(target).mkdir(parents=True, exist_ok=True)
        self.artifacts(target).mkdir(parents=True, exist_ok=True)
        known = set(self.artifacts(target).iterdir())
        # Files that it leaves there are removed with it.
        scratch = tempfile.mkdtemp(prefix="notegate-fuzz-")
        with open(self.log(target), "wb") as log:
            # A group of its own: Ctrl-C reaches it through stop(), once.
            process = subprocess.Popen(
                [self.program(target), f"-max_total_time={seconds}", f"-timeout={TIMEOUT_SECONDS}",
                 f"-rss_limit_mb={MEMORY_MB}", "-print_final_stats=1", f"-artifact_prefix={self.artifacts(target)}/",
                 self.grown(target), self.corpora / target], stdout=log, stderr=log, process_group=0,
                env=os.environ | {"TMPDIR": scratch})
        self.running[process.pid] = (target, process, known, scratch)
        if self.stopping:
            process.send_signal(signal.SIGINT)

    def findings(self, target, known):
        """Files of findings; without inputs that were slow because the machine was busy."""
        for path in sorted(set(self.artifacts(target).iterdir()) - known):
            if path.name.startswith("slow-unit-"):
                continue
            if path.name.startswith("timeout-"):
                again = subprocess.run([self.program(target), f"-timeout={TIMEOUT_SECONDS}", path], capture_output=True, check=False)
                if again.returncode == 0:
                    self.tell(f"    {path}: was slow once, and is not")
                    continue
            yield path

    def end(self, pid, status, usage):
        """Of a run: counted, and told where it found something."""
        target, process, known, scratch = self.running.pop(pid)
        shutil.rmtree(scratch, ignore_errors=True)
        code = process.returncode = os.waitstatus_to_exitcode(status)
        tally, log = self.tallies[target], self.log(target).read_text(errors="replace")
        tally.read(log)
        tally.seconds += usage.ru_utime + usage.ru_stime
        paths = list(self.findings(target, known))
        if not paths and (code == 0 or code in STOPPED and self.stopping or "ERROR: libFuzzer: timeout" in log):
            return
        tally.found += max(len(paths), 1)
        self.tell(f"FOUND by {target} (exit {code}):\n" + "\n".join(log.splitlines()[-LOG_LINES:]))
        for path in paths:
            self.tell(f"    replay: {shlex.join([str(self.program(target)), str(path)])}\n"
                      f"    keep:   cp {shlex.quote(str(path))} {self.corpora / target}/NAME")

    # ---- all of them

    def stop(self, _signal=None, _frame=None):
        self.stopping = True
        for _, process, *_ in self.running.values():
            process.send_signal(signal.SIGINT)
        signal.alarm(END_SECONDS)

    def kill(self, _signal=None, _frame=None):
        for _, process, *_ in self.running.values():
            process.kill()

    def wait(self):
        """For one run to end."""
        self.end(*os.wait4(-1, 0))

    def round(self, seconds, jobs):
        for target in self.targets:
            if self.stopping:
                break
            self.begin(target, seconds)
            while len(self.running) >= jobs:
                self.wait()
        while self.running:
            self.wait()

    def summary(self, wall):
        total = Tally()
        for target in self.targets:
            if not self.grown(target).is_dir():
                continue
            tally, inputs = self.tallies[target], self.inputs(target)
            self.tell(tally.line(target, inputs))
            for name in ("runs", "seconds", "added", "found"):
                setattr(total, name, getattr(total, name) + getattr(tally, name))
        self.tell(f"{len(self.targets)} targets, {total.runs} runs, {total.seconds:.0f} CPU s ({total.seconds / 3600:.2f} hours) in "
                  f"{wall:.0f} s, "
                  f"{total.added} new inputs, {total.found} found")
        return total.found

    def run(self, seconds, rounds, jobs):
        """How much was found; rounds: 0 is until it is stopped."""
        begun, done = time.monotonic(), 0
        before = {number: signal.signal(number, how) for number, how in (
            (signal.SIGINT, self.stop), (signal.SIGTERM, self.stop), (signal.SIGALRM, self.kill))}
        try:
            while not self.stopping and (rounds == 0 or done < rounds):
                self.round(seconds, jobs)
                done += 1
                self.tell(f"round {done}{', stopped' if self.stopping else ''}:")
                found = self.summary(time.monotonic() - begun)
        finally:
            signal.alarm(0)
            self.kill()
            for number, how in before.items():
                signal.signal(number, how)
        return found


