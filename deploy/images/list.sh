#!/bin/sh
# Prints the images of the operator stack, one a line, with the digest of each that the engine has from a
# registry: what a site without the Internet has to copy. For another one it says what is missing.
# ENGINE    docker (default) or podman
# REGISTRY  prefix of the two images of Headroom, such as registry.example/team
set -eu
cd "$(dirname "$0")/../.."
engine=${ENGINE:-docker}
registry=${REGISTRY:+${REGISTRY%/}/}
version=$(sed -n 's/^appVersion: *//p' deploy/helm/headroom/Chart.yaml)
kubernetes=$(sed -n 's|^.*k8s.io/kubernetes \(v[0-9.]*\).*$|\1|p' tools/kubernetes/go.mod)
command -v "$engine" >/dev/null || { echo "$engine not found. Install it, or set ENGINE=podman." >&2; exit 2; }

missing=0
for image in "${registry}headroom-controller:$version" "${registry}headroom-gpu-server:$version" \
  "registry.k8s.io/kube-scheduler:$kubernetes"; do
  repository=${image%:*}
  digest=$("$engine" image inspect --format '{{range .RepoDigests}}{{println .}}{{end}}' "$image" 2>/dev/null |
    grep -F "$repository@" | head -n 1) || true
  case $image in
    registry.k8s.io/*) todo="$engine pull $image" ;;
    *) todo="PUSH=1 REGISTRY=… make images" ;;
  esac
  if [ -n "$digest" ]; then
    echo "$image $digest"
  else
    missing=1
    echo "$image without a digest: the engine has it from no registry ($todo)"
  fi
done
exit $missing
