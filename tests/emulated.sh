#!/bin/sh
# Run the tests of the numeric packages on the other architecture (x86-64 on ARM, ARM on x86-64), by
# QEMU's user-mode emulation of a small Debian.  Needs root on Debian; timings under it mean nothing.
#   sh tests/emulated.sh [pytest arguments]          EMULATED_ROOT: where that Debian is kept
set -eu
cd "$(dirname "$0")/.."
case "$(uname -m)" in
  aarch64) debian=amd64 machine=x86_64 cpu=SandyBridge extra='polars[rtcompat]' ;;  # without AVX2
  # Without SME, for which QEMU's "max" has OpenBLAS set wrong flags: "divide by zero in matmul".
  x86_64) debian=arm64 machine=aarch64 cpu=neoverse-n1 extra= ;;
  *) echo "no other architecture is known for $(uname -m)"; exit 2 ;;
esac
root=${EMULATED_ROOT:-/var/cache/firstpage-$debian}
packages="tests/core/kernels tests/learning/losses tests/learning/solvers tests/evaluation/measures tests/evaluation/dcglearn tests/evaluation/aggregation tests/labeling"

if ! [ -e "$root/ready" ]; then
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    qemu-user-static debootstrap binfmt-support >/dev/null
  grep -qs binfmt_misc /proc/mounts || mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc
  update-binfmts --enable "qemu-$machine"
  if [ -d "$root/debootstrap" ]; then  # an earlier attempt was interrupted
    umount "$root/proc" 2>/dev/null || true
    rm -rf --one-file-system "$root"
  fi
  debootstrap --arch="$debian" --variant=minbase --include=python3,libgomp1 bookworm "$root" >/dev/null
  # Wheels are laid out by this machine's pip: nothing is installed under emulation.
  python=$(chroot "$root" python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  names="numpy scipy numba llvmlite scikit-learn threadpoolctl click rich piqp \
    pytest pytest-xdist hypothesis clarabel polars pandas pyarrow zstandard"
  grep -E "^($(echo $names | tr ' ' '|'))==" requirements.txt > "$root/constraints"
  .venv/bin/python -m pip install --quiet --target "$root/site" --only-binary=:all: \
    --implementation cp --python-version "$python" \
    --platform "manylinux_2_28_$machine" --platform "manylinux_2_27_$machine" \
    --platform "manylinux_2_17_$machine" --platform "manylinux2014_$machine" \
    -c "$root/constraints" $names $extra
  touch "$root/ready"
fi

# A copy of what is tested: the emulated run leaves nothing in this tree, and keeps its kernels.
# Times are copied too, so that bytecode of this machine holds there.
mkdir -p "$root/firstpage"
rm -rf "$root/firstpage/src" "$root/firstpage/tests"
cp -rp src tests pyproject.toml README.md docs "$root/firstpage"
[ $# -gt 0 ] || set -- $packages
# Tests of the compiler itself: under emulation another one takes its place.
set -- --ignore=tests/core/kernels/compiler "$@"

# QEMU 7.2 crashes in AVX2 code, so the emulated x86-64 is one with AVX only.
emulated() {
  chroot "$root" /usr/bin/env -i PATH=/usr/bin:/bin HOME=/tmp QEMU_CPU="$cpu" LANG=C.UTF-8 \
    PYTHONPATH=/site:/firstpage/src PYTHONDONTWRITEBYTECODE=1 \
    FIRSTPAGE_CROSS_COMPILER=/tmp/compiler.socket sh -c 'cd /firstpage && exec python3 -u "$@"' sh "$@"
}
# LLVM is too slow under emulation: kernels are compiled for that machine on this one.
emulated -m tests.cross_compiler target > "$root/tmp/target.json"
PYTHONPATH=src .venv/bin/python -m tests.cross_compiler serve "$root/tmp/target.json" \
  "$root/tmp/compiler.socket" > "$root/tmp/compiler.log" &
compiler=$!
trap 'kill $compiler' EXIT
while ! [ -S "$root/tmp/compiler.socket" ]; do sleep 1; kill -0 $compiler; done
# A tenth of the random examples: emulation takes 20 to 40 times as long.
emulated -m pytest --hypothesis-profile=emulated "$@"
