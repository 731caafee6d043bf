#!/bin/sh
# Builds the Debian packages headroom, headroom-controller, headroom-gpu-server and headroom-gateway from the
# npm package.
# Usage: deploy/debian/build.sh FOLDER [VERSION], in the root of the checkout, after `make install guard`.
set -eu
out=$1
here=$(dirname "$0")
version=${2:-$(node -p "require('./package.json').version")}
architecture=$(dpkg --print-architecture)
case $architecture in
  amd64) cpu=x64 ;;
  arm64) cpu=arm64 ;;
  *) echo "there is no Node.js package for $architecture" >&2; exit 1 ;;
esac
node_binary=node_modules/node-linux-$cpu/bin/node
[ -x "$node_binary" ] || { echo "$node_binary is missing: run make install" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
umask 022
mkdir -p "$out"

# HEADROOM_TARBALL names a packed file, to build several versions from it.
tarball=${HEADROOM_TARBALL:-}
if [ -z "$tarball" ]; then
  npm pack --silent --pack-destination "$work" >/dev/null
  tarball=$(echo "$work"/headroom-*.tgz)
fi

# The program, with its own Node.js: Debian 12 has an older one.
root=$work/headroom
lib=$root/usr/lib/headroom
mkdir -p "$lib/bin" "$root/usr/bin" "$root/usr/share/doc/headroom" "$root/usr/share/bash-completion/completions"
tar xzf "$tarball" -C "$lib" --strip-components=1 --no-same-owner
cp "$node_binary" "$lib/bin/node"
cp LICENSE "$root/usr/share/doc/headroom/copyright"
# Commands, and the program of each; kubectl finds its plugin by the name.
for command in headroom=main kubectl-headroom=kubectl-headroom; do
  file=$root/usr/bin/${command%=*}
  printf '#!/bin/sh\nexec /usr/lib/headroom/bin/node -- /usr/lib/headroom/dist/cli/%s.js "$@"\n' \
    "${command#*=}" > "$file"
  chmod 0755 "$file"
done
"$lib/bin/node" "$lib/dist/cli/main.js" completion bash > "$root/usr/share/bash-completion/completions/headroom"

# The services. Variables are in a conffile each; keys are not part of a package.
for name in controller gpu-server gateway; do
  root=$work/headroom-$name
  mkdir -p "$root/etc/headroom" "$root/usr/lib/systemd/system"
  cp "$here/headroom-$name/$name.env" "$root/etc/headroom/"
  cp "deploy/systemd/headroom-$name.service" "$root/usr/lib/systemd/system/"
done
# What only a GPU server needs: the guard, compiled, and the package that calls the driver.
guard=$work/headroom-gpu-server/usr/lib/headroom/dist/gpu-server/guard/build
packages=$work/headroom-gpu-server/usr/lib/headroom/node_modules
mkdir -p "$guard" "$packages/@koromix"
cp gpu-server/guard/build/headroom-guard "$guard/"
cp -r node_modules/koffi "$packages/"
cp -r node_modules/@koromix/koffi-linux-$cpu "$packages/@koromix/"
rm -rf "$packages/koffi/src" "$packages/koffi/vendor" "$packages/koffi/doc"

for name in headroom headroom-controller headroom-gpu-server headroom-gateway; do
  root=$work/$name
  mkdir -p "$root/DEBIAN"
  for file in "$here/$name"/*; do
    case ${file##*/} in
      control) sed "s/@VERSION@/$version/g; s/@ARCHITECTURE@/$architecture/" "$file" > "$root/DEBIAN/control" ;;
      *.env) echo "/etc/headroom/${file##*/}" > "$root/DEBIAN/conffiles" ;;
      *) install -m 0755 "$file" "$root/DEBIAN/" ;;
    esac
  done
  find "$root" -type d -exec chmod 0755 {} +
  dpkg-deb --root-owner-group -Zgzip -z6 --build "$root" "$out/${name}_${version}_$architecture.deb" >/dev/null
  echo "$out/${name}_${version}_$architecture.deb"
done
