#!/bin/sh
# Builds the images headroom-controller and headroom-gpu-server, tagged with the version, and prints their IDs.
# Usage: deploy/images/build.sh [VERSION], in the root of the checkout.
# ENGINE         docker (default) or podman
# REGISTRY       prefix of the names, such as registry.example/team
# PUSH=1         also pushes them to REGISTRY, and prints the digests to deploy by
# BUILD_OPTIONS  passed to `build`, such as "--build-arg NODE_IMAGE=mirror.example/node:24-slim"
set -eu
engine=${ENGINE:-docker}
version=${1:-$(node -p "require('./package.json').version")}
registry=${REGISTRY:-}
if [ "${PUSH:-}" = 1 ] && [ -z "$registry" ]; then
  echo "PUSH=1 needs REGISTRY, such as REGISTRY=registry.example/team" >&2
  exit 2
fi
command -v "$engine" >/dev/null || { echo "$engine not found. Install it, or set ENGINE=podman." >&2; exit 2; }
revision=$(git rev-parse HEAD 2>/dev/null || echo unknown)
# A version names one content: changes that are not committed get a tag of their own.
if [ -n "$(git status --porcelain 2>/dev/null)" ]; then
  version=$version-dirty
  revision=$revision-dirty
fi

for name in controller gpu-server; do
  tag=${registry:+$registry/}headroom-$name:$version
  # Two layers of quotes would be needed for options with spaces, which image builds do not have.
  # shellcheck disable=SC2086
  "$engine" build --target "$name" --tag "$tag" \
    --label "org.opencontainers.image.version=$version" --label "org.opencontainers.image.revision=$revision" \
    ${BUILD_OPTIONS:-} . >&2
done

# Podman compresses layers when it pushes: the digest of the image that it keeps is not that of the registry.
digest=$(mktemp)
trap 'rm -f "$digest"' EXIT
push() {
  case $("$engine" --version) in
    podman*)
      "$engine" push --digestfile "$digest" "$1" >&2
      echo "${1%:*}@$(cat "$digest")" ;;
    *)
      "$engine" push "$1" >&2
      "$engine" image inspect --format "{{range .RepoDigests}}{{println .}}{{end}}" "$1" | grep "^${1%:*}@" ;;
  esac
}

# After both are built: a failure pushes nothing.
for name in controller gpu-server; do
  tag=${registry:+$registry/}headroom-$name:$version
  if [ "${PUSH:-}" = 1 ]; then
    push "$tag"
  else
    echo "$tag $("$engine" image inspect --format '{{.Id}}' "$tag")"
  fi
done
