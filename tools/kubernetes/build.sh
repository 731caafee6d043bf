#!/bin/sh
# Builds the programs of a Kubernetes control plane into a folder, from the Go modules of tools/: what exists
# and is newer than its module stays. Without Go it says so and builds nothing.
# Usage: build.sh FOLDER [PROGRAM …]
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$1"
folder=$(cd "$1" && pwd)
shift
# The place of Go's own archive, which is not on every user's PATH.
PATH=$PATH:/usr/local/go/bin
if ! command -v go >/dev/null; then
  echo "skipped: Go is not installed, so the programs of Kubernetes are not built (https://go.dev/dl)" >&2
  exit 0
fi
export CGO_ENABLED=0

# The version that a program reports; clients compare it.
version=$(sed -n 's|^.*k8s.io/kubernetes v\([0-9.]*\).*$|\1|p' "$root/tools/kubernetes/go.mod")
[ -n "$version" ] || { echo "tools/kubernetes/go.mod names no version of k8s.io/kubernetes" >&2; exit 1; }
minor=${version#*.}
at=k8s.io/component-base/version
kubernetes="-X $at.gitVersion=v$version -X $at.gitMajor=${version%%.*} -X $at.gitMinor=${minor%%.*}"

# build MODULE PROGRAM PACKAGE FLAGS
build() {
  if [ "$folder/$2" -nt "$root/tools/$1/go.mod" ]; then return; fi
  echo "building $2 (once)"
  (cd "$root/tools/$1" && go build -p "${GO_JOBS:-2}" -trimpath -ldflags "-s -w $4" -o "$folder/$2.new" "$3")
  mv "$folder/$2.new" "$folder/$2"
}

for program in ${*:-etcd kubectl kube-apiserver kube-controller-manager kube-scheduler helm}; do
  case $program in
    etcd) build etcd etcd go.etcd.io/etcd/server/v3 "" ;;
    helm) build helm helm helm.sh/helm/v4/cmd/helm "" ;;
    kubectl | kube-apiserver | kube-controller-manager | kube-scheduler)
      build kubernetes "$program" "k8s.io/kubernetes/cmd/$program" "$kubernetes" ;;
    *) echo "$program is not a program of Kubernetes that this script knows" >&2; exit 2 ;;
  esac
done
