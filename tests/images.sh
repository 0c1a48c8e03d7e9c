#!/bin/sh
# Build the images of deploy/Dockerfile and start each, where no registry and no container engine can be
# reached: buildah runs every step in a chroot, on Debian 12 with its Python 3.11 by debootstrap instead
# of python:3.11-slim-bookworm.  A container is a process in namespaces of its own, as compose.yaml
# confines it: the user of the image, no capabilities, a read-only file system but /tmp and, for
# labeling, /data.  Models and the index are files of version 0.1.0.  Needs root on Debian.
#   sh tests/images.sh [labeling|serving|search ..]      IMAGES_ROOT: where images are kept
set -eu
cd "$(dirname "$0")/.."
root=${IMAGES_ROOT:-/var/cache/firstpage-images}
mkdir -p "$root"
export CONTAINERS_STORAGE_CONF="$root/storage.conf"
printf '[storage]\ndriver = "overlay"\ngraphroot = "%s/graph"\nrunroot = "%s/run"\n' "$root" "$root" \
  > "$CONTAINERS_STORAGE_CONF"
for tool in buildah debootstrap; do
  command -v $tool > /dev/null || DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
    --no-install-recommends $tool > /dev/null
done
if [ -z "$(buildah images --quiet localhost/python-base 2> /dev/null)" ]; then
  rm -rf "$root/base"
  debootstrap --variant=minbase --include=python3-venv,python3-pip,ca-certificates bookworm \
    "$root/base" > "$root/debootstrap.log"
  rm -f "$root"/base/usr/lib/python3*/EXTERNALLY-MANAGED
  ln -s python3 "$root/base/usr/bin/python"
  cp /etc/ssl/certs/ca-certificates.crt "$root/base/etc/ssl/certs/"  # also those of a proxy
  container=$(buildah from scratch)
  buildah add --quiet "$container" "$root/base" / > /dev/null
  buildah config --env PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$container"
  buildah commit --quiet --rm "$container" localhost/python-base > /dev/null
  rm -rf "$root/base"
fi
files=$(mktemp -d)
trap 'rm -rf "$files"' EXIT
python3 -m zipfile -e tests/release/files/0.1.0.zip "$files"
mv "$files/shop.index" "$files/index"
chmod -R a+rX "$files"

# Print how an image starts, and its check of health, as shell words.
words='
import json, shlex, sys
config = json.load(sys.stdin)["Docker"]["config"]
environment = ["env", "-i", "HOME=/data", *config["Env"]]
print("user=" + shlex.quote(config["User"]))
print("start=" + shlex.quote(shlex.join([*environment, *config["Entrypoint"], *config["Cmd"]])))
print("health=" + shlex.quote(shlex.join([*environment, *config["Healthcheck"]["Test"][1:]])))
'
# In namespaces of its own.
try='
  ip link set lo up
  mount --bind "$image" "$image"
  mount -t tmpfs -o mode=1777 tmpfs "$image/tmp"
  mount --rbind /dev "$image/dev"
  if [ "$target" = labeling ]; then mount -t tmpfs -o "uid=$user,gid=$user,mode=750" tmpfs "$image/data"
  else mount --bind "$files" "$image/data" && mount -o remount,ro,bind "$image/data"; fi
  mount -o remount,ro,bind "$image"
  confined="chroot $image setpriv --reuid=$user --regid=$user --clear-groups --bounding-set=-all
    --no-new-privs"
  inside() { $confined sh -c "cd /data && exec $1"; }
  unshare --pid --fork --mount-proc="$image/proc" $confined sh -c "cd /data && exec $start" \
    > "$log" 2>&1 & server=$!
  healthy=no
  for attempt in $(seq 60); do
    sleep 1
    if inside "$health" > "$log.health" 2>&1; then healthy="after $attempt s"; break; fi
    kill -0 $server || break
  done
  [ "$healthy" != no ] || { cat "$log" "$log.health"; exit 1; }
  inside "python -c \"import urllib.request; print(urllib.request.urlopen(\\\"$url\\\").status)\"" \
    > "$log.answer" 2>&1 || { cat "$log" "$log.answer"; exit 1; }
  ! inside "touch /opt/firstpage/written" 2> /dev/null
  kill -TERM $(cat /proc/$server/task/$server/children)  # as `docker stop` does: to process 1
  status=0; start=$(date +%s); wait $server || status=$?
  stopped=$(($(date +%s) - start))
  echo "$target: healthy $healthy; $url: $(cat "$log.answer"); stopped after $stopped s, status $status"
  [ "$status" = 0 ] && [ $stopped -lt 10 ]
'
[ $# -gt 0 ] || set -- serving labeling search
for target in "$@"; do
  buildah bud --quiet --format docker --isolation chroot --pull-never \
    --build-arg PYTHON=localhost/python-base --build-arg VERSION=0.1.0 \
    $([ ! -e /etc/pip.conf ] || echo --volume /etc/pip.conf:/etc/pip.conf:ro) \
    --file deploy/Dockerfile --target "$target" --tag "firstpage-$target" . \
    > "$root/$target.build" 2>&1 || { tail -30 "$root/$target.build"; exit 1; }
  eval "$(buildah inspect --type image "firstpage-$target" | python3 -c "$words")"
  case $target in
    labeling) url=http://127.0.0.1:8210/login ;;
    serving) url=http://127.0.0.1:8220/metrics ;;
    search) url=http://127.0.0.1:8220/search?q=red+shoe ;;
  esac
  container=$(buildah from --pull-never "firstpage-$target")
  target=$target user=$user start=$start health=$health url=$url files=$files log=$root/$target.log \
    image=$(buildah mount "$container") unshare --mount --net sh -eu -c "$try"
  buildah umount "$container" > /dev/null
  buildah rm "$container" > /dev/null
done
