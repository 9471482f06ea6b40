#!/bin/sh
# Brings a machine to where it can build, demonstrate or test Pipette.
#
#   sh build/setup.sh npm          npm packages only
#   sh build/setup.sh demo|image|overlay|bench|soak|test   npm packages, and the Debian packages of that use
#
# Says nothing when there is nothing to do. Debian packages are installed when root; otherwise, or
# with PIPETTE_NO_APT=1, the missing ones are named and the script ends with status 1.
set -eu
cd "$(dirname "$0")/.."
use=${1:-test}

say() { printf '%s\n' "$*" >&2; }

# --- npm ---------------------------------------------------------------------------------------

if [ ! -d node_modules ] || [ package-lock.json -nt node_modules/.package-lock.json ]; then
  say "Installing the npm packages of package-lock.json"
  npm ci --no-audit --no-fund --loglevel=error >&2
  # npm leaves the file as old as its packages: without this the next run would install again.
  touch node_modules/.package-lock.json
fi

# Where npm runs no install scripts, the command "bun" is a placeholder: the program itself lies in
# the package for this machine.
if ! node_modules/.bin/bun --version >/dev/null 2>&1; then
  real=$(ls node_modules/@oven/bun-linux-*/bin/bun 2>/dev/null | head -n 1)
  if [ -z "$real" ]; then
    say "Cannot set up: npm installed no Bun for this machine, wanted one of the packages @oven/bun-*; run \"npm ci\" and look at its output"
    exit 1
  fi
  ln -sf "../../$real" node_modules/.bin/bun
fi

[ "$use" = npm ] && exit 0

# --- Schemas of Kubernetes ----------------------------------------------------------------------

# For the manifests; where they cannot be had, the tests that need them are skipped with a word.
schemas="${XDG_CACHE_HOME:-$HOME/.cache}/pipette/schemas-1.37.0"
if [ "$use" = test ] && [ ! -d "$schemas" ] && command -v python3 >/dev/null 2>&1; then
  say "Installing kubernetes-validate 1.37.0"
  if python3 -m venv "$schemas.new" >/dev/null 2>&1 &&
    "$schemas.new/bin/pip" install --quiet --disable-pip-version-check kubernetes-validate==1.37.0 >/dev/null 2>&1; then
    # Its programs name the directory that they were made in.
    sed -i "1s|$schemas.new|$schemas|" "$schemas.new/bin/kubernetes-validate"
    mv "$schemas.new" "$schemas"
  else
    say "It cannot be had here"
    rm -rf "$schemas.new"
  fi
fi

# --- Debian ------------------------------------------------------------------------------------

# What each use needs beyond Debian's base system, and what for.
demo="iproute2 nftables iputils-ping util-linux"      # namespaces, masquerade, ping, unshare
image="nftables                                       # goes into the image, with the libraries that it needs
  musl-tools gcc-mingw-w64-x86-64                     # the small program in front"
overlay="$demo
  openvswitch-switch                                  # a database and a switch of each node's own; its service may run or not
  etcd-server                                         # the registry of nodes, a cluster of each run's own
  wireguard-go                                        # encrypts where the kernel has no WireGuard
  strongswan libcharon-extra-plugins libstrongswan-standard-plugins openvswitch-ipsec   # IPsec, also where the kernel has no ESP"
bench="$overlay
  containernetworking-plugins                         # the peer
  musl-tools                                          # the small program in front, and what starts and measures programs
  wine64 gcc-mingw-w64-x86-64                         # its twin for Windows"
soak="$overlay
  iptables                                            # port rules are among what must not stay behind
  wine64 gcc-mingw-w64-x86-64                         # with the data path of Windows"
test="$bench
  containerd runc podman                              # the runtimes
  iptables                                            # portmap and podman call it
  busybox-static gcc libc6-dev                        # container images made offline
  musl-tools libasan8 libubsan1                       # the small program in front, as it is delivered and with sanitizers
  clang-14 libclang-rt-14-dev                         # libFuzzer, which leads streams into its state machine
  strace                                              # kills at chosen system calls
  procps                                              # sysctl
  systemd                                             # runs the unit, as process 1 of a machine of its own
  prometheus                                          # promtool, which judges metrics and tries alert rules
  openssl                                             # certificates for the tests of the registry
  etcd-client                                         # etcdctl, for the users and roles of etcd, and records that lie
  skopeo libhivex-bin                                 # read the images that are made, and the registry hives in one
  zsh                                                 # runs its completion script
  wine64 gcc-mingw-w64-x86-64                         # pipette.exe, and our stubs of Windows' own DLLs
  chromium                                            # the browser that looks at the page
  golang-go golang-google-grpc-dev golang-goprotobuf-dev protobuf-compiler libprotobuf-dev   # grpc-go as a peer"

case $use in
  demo) wanted=$demo ;;
  image) wanted=$image ;;
  overlay) wanted=$overlay ;;
  bench) wanted=$bench ;;
  soak) wanted=$soak ;;
  test) wanted=$test ;;
  *) say "Cannot set up: the use is \"$use\", wanted npm, demo, image, overlay, bench, soak or test"; exit 2 ;;
esac
wanted=$(printf '%s\n' "$wanted" | sed 's/#.*//')

if ! command -v dpkg-query >/dev/null 2>&1; then
  say "Cannot look for Debian packages: there is no dpkg here, wanted Debian 12; going on with what is installed"
  exit 0
fi

missing=
for package in $wanted; do
  status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$status" = installed ] || missing="$missing $package"
done
[ -z "$missing" ] && exit 0

if [ "$(id -u)" != 0 ] || [ "${PIPETTE_NO_APT:-}" = 1 ]; then
  say "Cannot go on: these Debian packages are missing and are not installed without root or with PIPETTE_NO_APT=1, wanted: apt-get install$missing"
  exit 1
fi

say "Installing the Debian packages$missing"
log=$(mktemp)
export DEBIAN_FRONTEND=noninteractive
# An automatic upgrade may hold dpkg's lock for a while; a changed configuration file stays as it is.
options="-y --no-install-recommends -o DPkg::Lock::Timeout=300 -o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold"
if ! { apt-get update && apt-get install $options $missing; } >"$log" 2>&1 </dev/null; then
  tail -n 20 "$log" >&2
  say "Cannot install the Debian packages: apt-get failed, its whole output is in \"$log\""
  exit 1
fi
rm -f "$log"
