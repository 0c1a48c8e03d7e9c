#!/bin/sh
# What tests need beside Python: a browser and a database server.  Installed where that is allowed;
# elsewhere the tests that need them are skipped, and say so.
missing=""
# The headless shell does a third of the work of a whole browser; either will do.
command -v chromium-headless-shell >/dev/null || missing="$missing chromium-headless-shell"
ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 || command -v postgres >/dev/null ||
  missing="$missing postgresql"
[ -z "$missing" ] && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  echo "installing$missing (the tests need them)"
  # A cluster of its own would start with the package; the tests start theirs.
  mkdir -p /etc/postgresql-common
  [ -e /etc/postgresql-common/createcluster.conf ] ||
    echo "create_main_cluster = false" > /etc/postgresql-common/createcluster.conf
  apt-get update -qq &&
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing \
      >/dev/null && exit 0
fi
if [ "$missing" = " chromium-headless-shell" ]; then
  for browser in chromium chromium-browser google-chrome; do
    command -v $browser >/dev/null && exit 0
  done
fi
echo "NOT INSTALLED:$missing. Tests that need them will be SKIPPED; install them, or run as root."
