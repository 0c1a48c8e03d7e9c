#!/bin/sh
# What tests need beside Python: a browser and a database server.  Installed where that is allowed;
# elsewhere the tests that need them are skipped, and say so.
install() {  # packages; whether they could be installed
  [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 1
  echo "installing $* (the tests need it)"
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}
has_browser() {
  for browser in chromium chromium-browser google-chrome; do
    command -v $browser >/dev/null && return 0
  done
  return 1
}
has_postgres() {
  ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 || command -v postgres >/dev/null
}
has_shell() { command -v chromium-headless-shell >/dev/null; }

has_shell && has_postgres && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then apt-get update -qq; fi
# The headless shell does a third of the work of a whole browser; either will do.
has_shell || install chromium-headless-shell || has_browser || install chromium ||
  echo "NOT INSTALLED: chromium. Tests in a browser will be SKIPPED; install it, or run as root."
if ! has_postgres; then
  # A cluster of its own would start with the package; the tests start theirs.
  if [ "$(id -u)" = 0 ] && mkdir -p /etc/postgresql-common; then
    [ -e /etc/postgresql-common/createcluster.conf ] ||
      echo "create_main_cluster = false" > /etc/postgresql-common/createcluster.conf
  fi
  install postgresql ||
    echo "NOT INSTALLED: postgresql. Its tests will be SKIPPED; install it, or run as root."
fi
exit 0
