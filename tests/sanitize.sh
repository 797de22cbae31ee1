#!/bin/sh
# Runs the tests `sanitize::` of the binary gpu under the four tools of compute-sanitizer: sh tests/sanitize.sh TEST_BINARY
#
# Each tool has to be silent on the test `clean`, and to report the defect of the kernel that the `planted_*` test of its name
# launches. All runs go side by side. Exit 0 where all of that holds, else 1, with the beginning and the end of each report that
# is amiss.
#
# COMPUTE_SANITIZER     the tool, compute-sanitizer where it is not set
# SANITIZE_SECONDS      how long a run may take, 300 where it is not set
# CUTEMPLATE_TEST_DATA  the kernels, as tests/README.md has it
binary="${1:?the test binary gpu}"
sanitizer="${COMPUTE_SANITIZER:-compute-sanitizer}"
tools="memcheck racecheck initcheck synccheck"
logs="$(mktemp -d)" || exit 1
trap 'rm -r "$logs"' EXIT
export CUTEMPLATE_PLANTED=1

# start TOOL TEST: in the background, with a log and its exit status.
start() {
  {
    timeout -k 10 "${SANITIZE_SECONDS:-300}" "$sanitizer" --tool "$1" --error-exitcode 99 --show-backtrace no \
      --target-processes application-only "$binary" --exact "sanitize::$2" --include-ignored --nocapture --test-threads=1 > "$logs/$1.$2" 2>&1 < /dev/null
    echo "$?" > "$logs/$1.$2.status"
  } &
}

# What a tool says of its defect.
words() {
  case "$1" in
    memcheck) echo 'Invalid __global__ (read|write)' ;;
    racecheck) echo 'Race reported between' ;;
    initcheck) echo 'Uninitialized __global__ memory read' ;;
    synccheck) echo 'Barrier error detected' ;;
  esac
}

# silent LOG STATUS: nothing was found, and not for want of launches.
silent() {
  [ "$2" = 0 ] && grep -Eq '^=+ (ERROR|RACECHECK) SUMMARY: 0 ' "$1" && grep -Eq ' [1-9][0-9]* launches of ' "$1"
}

# caught LOG STATUS TOOL: the run came to its end, and the right thing was found, in the kernel that has it.
caught() {
  [ "$2" != 0 ] && grep -Eq '^=+ (ERROR|RACECHECK) SUMMARY: [1-9]' "$1" &&
    grep -Eq "^=+ .*$(words "$3")" "$1" && grep -Eq '^=+ .*planted_[0-9]' "$1"
}

for tool in $tools; do
  start "$tool" clean
  start "$tool" "planted_$tool"
done
wait

failed=0
for tool in $tools; do
  for test in clean "planted_$tool"; do
    log="$logs/$tool.$test"
    status="$(cat "$log.status")"
    count="$(sed -nE 's/^=+ (ERROR|RACECHECK) SUMMARY: //p' "$log" | tail -n 1)"
    said=FAILED
    if [ "$test" = clean ]; then
      silent "$log" "$status" && said=silent
    else
      caught "$log" "$status" "$tool" && said=caught
    fi
    echo "$tool $test: exit $status, ${count:-no summary}: $said"
    if [ "$said" = FAILED ]; then
      failed=1
      { grep '^=' "$log" | head -n 20; echo ..; tail -n 12 "$log"; } | cut -c 1-200 | sed 's/^/    /'
    fi
  done
done
exit "$failed"
