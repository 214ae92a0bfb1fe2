#!/usr/bin/env python3
# real_models.py: packs random models of the sizes of real ones and runs them on the emulated board.
#
#   tests/real_models.py BUILD_DIRECTORY [SHAPE=TYPE]...
#
# Takes minutes and gigabytes, so tools/prove.sh runs it and CI does not. Exit code 1 if a model does not build within
# 180 seconds and 4 GiB, does not validate, or is not accepted.
import os
import subprocess
import sys
import tempfile
import time

SECONDS_MAX = 180
KIBIBYTES_MAX = 4 << 20
MODELS = ["qwen2-0.5b=q8_0", "qwen3-0.6b=q4_k", "llama-1b=f16"]


def run(*words):
    """Runs a program; returns its exit code, seconds and the most memory it had, in KiB."""
    begin = time.monotonic()
    child = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    return child.returncode, time.monotonic() - begin, usage.ru_maxrss


def check(programs, shape, kind, folder):
    model = os.path.join(folder, shape + ".gguf")
    package = os.path.join(folder, shape)
    if run(os.path.join(programs, "duet-random-model"), "--shape", shape, "--type", kind, "-o", model)[0] != 0:
        return "the model file was not written"
    code, seconds, kibibytes = run(os.path.join(programs, "duet-pack"), "build", "--quiet", "--model", "m=" + model, "-o", package)
    os.remove(model)
    if code != 0:
        return "duet-pack build ended with %d" % code
    print("%s from %s: built in %.0f s with %.2f GiB" % (shape, kind, seconds, kibibytes / (1 << 20)), flush=True)
    if seconds > SECONDS_MAX or kibibytes > KIBIBYTES_MAX:
        return "more than %d s or %d GiB" % (SECONDS_MAX, KIBIBYTES_MAX >> 20)
    if run(os.path.join(programs, "duet-pack"), "validate", package, "--allow-unsigned")[0] != 0:
        return "the package does not validate"
    if run(os.path.join(programs, "duet-accept"), "run", package, "--allow-unsigned")[0] != 0:
        return "the emulated board does not accept the package"
    return None


def main():
    if len(sys.argv) < 2:
        print("usage: real_models.py BUILD_DIRECTORY [SHAPE=TYPE]...", file=sys.stderr)
        return 2
    failed = False
    for word in sys.argv[2:] or MODELS:
        shape, _, kind = word.partition("=")
        with tempfile.TemporaryDirectory(prefix="duet-real-") as folder:
            wrong = check(os.path.join(sys.argv[1], "bin"), shape, kind or "q8_0", folder)
        if wrong is not None:
            print("%s: %s" % (shape, wrong), file=sys.stderr)
            failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
