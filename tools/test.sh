#!/usr/bin/env bash
# test.sh: installs what is missing, builds and runs all tests, and ends with a line of counts.
#
#   tools/test.sh [--preset release|dev|asan|tsan] [--label REGEX]
#
# Exit code 0 if every test passed, 1 if one failed, 2 for wrong use.
set -euo pipefail
cd "$(dirname "$0")/.."

preset=release
labels=()
while [ $# -gt 0 ]; do
  case "$1" in
    --preset) preset=${2:?test.sh: --preset needs a name}; shift 2 ;;
    --label) labels=(-R "${2:?test.sh: --label needs an expression}"); shift 2 ;;
    -h|--help) sed -n '2,6s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) echo "test.sh: unknown option '$1'; see tools/test.sh --help" >&2; exit 2 ;;
  esac
done

tools/setup.sh
echo "test: configuring and building preset $preset"
configure_log=$(mktemp)
trap 'rm -f "$configure_log"' EXIT
cmake --preset "$preset" >"$configure_log" 2>&1 || { cat "$configure_log" >&2; exit 1; }
if [ ${#labels[@]} -gt 0 ]; then
  # Only what is to run; a test's program has the test's name.
  mapfile -t targets < <(ctest --preset "$preset" "${labels[@]}" -N | sed -n 's/^ *Test *#[0-9]*: //p')
  [ ${#targets[@]} -gt 0 ] || { echo "test.sh: no test matches '${labels[1]}'" >&2; exit 2; }
  cmake --build --preset "$preset" --target "${targets[@]}"
else
  cmake --build --preset "$preset"
fi

echo "test: running"
junit=build/$preset/junit
rm -rf "$junit" && mkdir -p "$junit"
status=0
ctest --preset "$preset" --parallel "$(nproc)" "${labels[@]}" --output-junit "$PWD/$junit/ctest.xml" || status=1
python3 tests/summary.py "$junit" || status=1
exit $status
