#!/usr/bin/env python3
"""Runs each command that the README shows, in its order, from the project's root.

  python3 tests/readme_test.py ROOT BUILD

Commands are the lines of blocks marked ```sh. The test command itself is not run from inside the tests: .ci/run calls it. Paths
of the release build are replaced by BUILD, so that every preset can run this.
"""
import os
import re
import shutil
import subprocess
import sys

ELSEWHERE = {"tools/test.sh": ".ci/run", "tools/demo.sh --once": ".ci/run",
             "build/release/bin/duet-server --config config/demo.yaml": "tests/e2e/server_test.py",
             "build/release/bin/duet-server --model sums=tools/demo_models/abacus-q8_0.gguf --model tales=tools/demo_models/fable-q8_0.gguf":
                 "tests/e2e/admin_test.py"}


def commands(text):
    for block in re.findall(r"^```sh\n(.*?)^```", text, re.S | re.M):
        for line in block.splitlines():
            if line.strip() and not line.startswith("#"):
                yield line.strip()


def main():
    root, build = sys.argv[1:]
    work = os.path.join(build, "readme")
    shutil.rmtree(work, ignore_errors=True)
    os.makedirs(os.path.join(work, "build"))
    os.symlink(os.path.join(root, "tools"), os.path.join(work, "tools"))
    os.symlink(build, os.path.join(work, "build", "release"))
    seen = set()
    failed = 0
    for command in commands(open(os.path.join(root, "README.md"), encoding="utf-8").read()):
        seen.add(command)
        if command in ELSEWHERE:
            print(f"ok    {command}   (run by {ELSEWHERE[command]})")
            continue
        done = subprocess.run(command, shell=True, cwd=work, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        print(f"{'ok   ' if done.returncode == 0 else 'FAIL '} {command}")
        if done.returncode:
            failed += 1
            print(done.stdout[-2000:] + done.stderr[-2000:])
    for command in ELSEWHERE:
        if command not in seen:
            failed += 1
            print(f"FAIL  the README no longer shows {command}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
