#!/usr/bin/env bash
# prove.sh: what takes longer than CI may: fuzzing with libFuzzer, the thread sanitizer, simulation, models of real size, the benchmarks. For before an issue is closed.
#
#   tools/prove.sh [--minutes N]     N minutes of fuzzing a target (default 5)
#
# Exit code 0 if nothing was found, 1 if something was, 2 for wrong use.
set -euo pipefail
cd "$(dirname "$0")/.."

minutes=5
case "${1:-}" in
  '') ;;
  --minutes) minutes=${2:?prove.sh: --minutes needs a number} ;;
  -h|--help) sed -n '2,6s/^# \{0,1\}//p' "$0"; exit 0 ;;
  *) echo "prove.sh: unknown option '$1'; see tools/prove.sh --help" >&2; exit 2 ;;
esac
case "$minutes" in
  ''|*[!0-9]*) echo "prove.sh: --minutes wants a whole number, not '$minutes'" >&2; exit 2 ;;
esac

tools/setup.sh --bench
status=0

echo "prove: thread sanitizer"
tools/test.sh --preset tsan --label '^(runtime_(actors_|inspect_)?test|device_(contract|emulator|calrt)_test|actors_test|http_test)$' || status=1

echo "prove: the public awaitable under the address sanitizer"
cmake --preset asan -DDUET_SANITIZE_PUBLIC=ON >/dev/null
tools/test.sh --preset asan --label '_public_test$' || status=1

echo "prove: fuzzing, $minutes minutes a target"
cmake --preset clang -DDUET_FUZZ=ON -DDUET_SANITIZE=address,undefined,fuzzer-no-link -B build/fuzz >/dev/null
for source in tests/fuzz/*_fuzz.cpp; do
  target=$(basename "$source" .cpp)
  cmake --build build/fuzz --target "$target"
  mkdir -p "build/fuzz/found/$target"
  build/fuzz/bin/"$target" -max_total_time=$((minutes * 60)) -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
    -artifact_prefix="build/fuzz/found/$target/" "build/fuzz/found/$target" "tests/fuzz/corpus/${target%_fuzz}" || status=1
done

echo "prove: simulation"
cmake --preset release >/dev/null
cmake --build --preset release --target duet-sim demo_package
build/release/bin/duet-sim --seeds 20000 || status=1
build/release/bin/duet-sim --workload duet --seeds 5000 || status=1
build/release/bin/duet-sim --workload day --seed 1 || status=1
build/release/bin/duet-sim --replay tests/tools/sim_seeds.txt || status=1

echo "prove: models of real size"
cmake --build --preset release --target duet-random-model duet-pack duet-accept
tests/real_models.py build/release || status=1

echo "prove: benchmarks"
cmake --preset release >/dev/null
cmake --build --preset release --target duet-bench
build/release/bin/duet-bench decode || status=1
build/release/bin/duet-bench actors || status=1

exit $status
