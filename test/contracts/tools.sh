#!/usr/bin/env bash
# Fetches the tools of run.sh into a folder, once: tools.sh FOLDER. Ends with 1 when one is missing, and says which.
set -euo pipefail
tools=$1
redocly=2.77.0 spectral=6.16.3 schemathesis=4.32.5
wanted="redocly $redocly, spectral $spectral, schemathesis $schemathesis"
[ "$(cat "$tools/versions" 2>/dev/null)" != "$wanted" ] || exit 0

rm -rf "$tools"
mkdir -p "$tools"
log=$tools/log
missing() { tail -5 "$log" >&2; echo "no $1: $2" >&2; exit 1; }
# As root on Debian or Ubuntu what is missing is installed.
debian() {
  [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get "$@"
}
# Installing the package would start a Prometheus: promtool is taken out of it.
take_promtool() {
  cd "$tools" && debian -o APT::Sandbox::User=root download prometheus && dpkg-deb --fsys-tarfile prometheus_*.deb | tar -x ./usr/bin/promtool &&
    mv usr/bin/promtool . && rm -r usr prometheus_*.deb
}

echo "fetching promtool, $wanted (once)"
if command -v promtool >/dev/null; then ln -s "$(command -v promtool)" "$tools/promtool"; fi
[ -x "$tools/promtool" ] || (take_promtool) >> "$log" 2>&1 || missing promtool "it is in Debian's package prometheus"
npm install --prefix "$tools" --no-save --no-fund --no-audit --ignore-scripts --loglevel=error \
  "@redocly/cli@$redocly" "@stoplight/spectral-cli@$spectral" >> "$log" 2>&1 || missing "Redocly or Spectral" "npm could not fetch them"
python3 -c 'import ensurepip' 2>/dev/null || debian install -y -qq --no-install-recommends python3-venv >> "$log" 2>&1 ||
  missing "Python with venv" "on Debian 'apt-get install python3-venv'"
{ python3 -m venv "$tools/venv" && "$tools/venv/bin/pip" install --quiet "schemathesis==$schemathesis"; } >> "$log" 2>&1 ||
  missing schemathesis "pip could not fetch it; it needs Python 3.10 or newer"
echo "$wanted" > "$tools/versions"
