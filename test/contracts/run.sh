#!/usr/bin/env bash
# Holds the running controller's documents against the tools that outsiders use: promtool, Redocly, Spectral, schemathesis.
# The tools are fetched once into node_modules/.cache/contracts. Ends with 1 when any of them finds something, or when
# one is missing and CI is set. Schemathesis draws its requests from CONTRACTS_SEED, CONTRACTS_EXAMPLES of them for each operation.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
here=test/contracts
tools=$PWD/node_modules/.cache/contracts
examples=${CONTRACTS_EXAMPLES:-10}
seed=${CONTRACTS_SEED:-1}
phases=${CONTRACTS_PHASES:-examples,coverage,fuzzing,stateful}
work=$(mktemp -d)
server=''
trap 'if [ -n "$server" ]; then kill "$server" 2>/dev/null && wait "$server" || true; fi; rm -rf "$work"' EXIT

# Continuous integration has every tool; elsewhere a missing one is a reason to skip.
if ! "$here/tools.sh" "$tools"; then
  [ -z "${CI:-}" ] || exit 1
  echo "contracts: skipped, a tool is missing (see above)" >&2
  exit 0
fi

failing() { echo "contracts: $1" >&2; cat "$work/log" >&2; exit 2; }
node cli/main.ts token generate > "$work/token" 2> "$work/log" || failing "no token was made"
chmod 600 "$work/token"
CONTROLLER_ADMIN_TOKEN_FILE=$work/token CONTROLLER_HTTP_PORT=0 CONTROLLER_DATA_DIR=$work/data \
  CONTROLLER_SIMULATED_FLEET=scenarios/live-demo.scenario.yaml node cli/main.ts serve > "$work/log" 2>&1 &
server=$!
ask() {
  TOKEN=$(cat "$work/token") node --input-type=module -e '
    const answer = await fetch(process.argv[1], { headers: { Authorization: `Bearer ${process.env.TOKEN}` } })
    process.stdout.write(await answer.text())
    process.exitCode = answer.ok ? 0 : 1' "$base$1"
}
base=''
for _ in $(seq 120); do
  kill -0 "$server" 2>/dev/null || failing "the controller has ended"
  # It prints the address once it listens; the port is one that is free.
  base=$(grep -Eom1 'http://127[.0-9]+:[0-9]+' "$work/log" || true)
  [ -n "$base" ] && ask /readyz > /dev/null 2>&1 && break
  sleep 0.5
done
ask /api/v1/openapi.json > "$work/openapi.json" || failing "no OpenAPI document"
ask /metrics > "$work/metrics.txt" || failing "no metrics"

failed=''
run() { echo "== $1"; shift; "$@" || failed=1; }
run promtool "$tools/promtool" check metrics < "$work/metrics.txt"
# Redocly ends with 0 on warnings.
redocly() { "$tools/node_modules/.bin/redocly" lint --format=summary "$work/openapi.json" > "$work/redocly.txt" 2>&1 && ! grep -qi 'warning' "$work/redocly.txt" || { cat "$work/redocly.txt"; return 1; }; }
run redocly redocly
run spectral "$tools/node_modules/.bin/spectral" lint --fail-severity hint --ruleset "$here/spectral.yaml" "$work/openapi.json"
run "schemathesis, seed $seed, $examples examples" "$tools/venv/bin/schemathesis" --config-file "$here/schemathesis.toml" run "$base/api/v1/openapi.json" \
  -H "Authorization: Bearer $(cat "$work/token")" --phases "$phases" --max-examples "$examples" --workers 1 --seed "$seed" --no-color
[ -z "$failed" ] || { echo "contracts: something above is not as it should be" >&2; exit 1; }
echo "contracts: promtool, Redocly, Spectral and schemathesis report nothing"
