#!/usr/bin/env bash
# clang_check.sh: parses every source file, and every header alone, with clang-16, without generating code. It is the second
# opinion on what g++ accepts.
set -euo pipefail
cd "$(dirname "$0")/.."
cmake --preset clang >/dev/null
python3 - build/clang/compile_commands.json <<'PYTHON'
import concurrent.futures, json, os, shlex, subprocess, sys

def check(entry):
    words = shlex.split(entry["command"])
    while os.path.basename(words[0]) in ("cmake", "ccache") or words[0] in ("-E", "env") or "=" in words[0]:
        words.pop(0)
    out = words.index("-o")
    words = [w for i, w in enumerate(words) if i not in (out, out + 1) and w != "-c"] + ["-fsyntax-only"]
    done = subprocess.run(words, cwd=entry["directory"], capture_output=True, text=True)
    return entry["file"], done.returncode, done.stderr

entries = json.load(open(sys.argv[1]))
bad = 0
with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    for file, code, text in pool.map(check, entries):
        if code or text:
            bad += code != 0
            sys.stderr.write(f"{file}:\n{text}")
print(f"clang: {len(entries)} files parsed, {bad} with errors")
sys.exit(1 if bad else 0)
PYTHON
