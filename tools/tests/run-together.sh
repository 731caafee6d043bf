#!/usr/bin/env bash
# Runs the tests of `make test`: those that compute fill the time in which the others wait for processes, disks and
# leases. Their output follows at the end, and after it, from both, what failed.
set -uo pipefail
folder=$(mktemp -d)
trap 'kill "$computing" 2>/dev/null; rm -rf "$folder"' EXIT
export TEST_FAILURES=$folder/failures
touch "$TEST_FAILURES"
nice -n 10 vitest run --project unit --project worlds >"$folder/computing" 2>&1 &
computing=$!
vitest run --project adapters --project processes
waiting_status=$?
wait "$computing"
computing_status=$?
cat "$folder/computing" "$TEST_FAILURES"
exit $((waiting_status | computing_status))
