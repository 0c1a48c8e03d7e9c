#!/bin/sh
# What tests need beside Python: a browser and a database server.  As root on Debian they are
# installed, unless SYSTEM=no; otherwise the tests that need them are skipped, and say so.
may_install() {
  [ "${SYSTEM:-yes}" != no ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null
}
install() {  # packages; whether they could be installed
  may_install || return 1
  echo "installing $* (tests need it; SYSTEM=no forbids it)"
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}
missing() {  # package, what is skipped
  echo "NOT INSTALLED: $1. Tests $2 will be SKIPPED; to run them: apt-get install $1"
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
if may_install; then apt-get update -qq; fi
# The headless shell does a third of the work of a whole browser; either will do.
has_shell || install chromium-headless-shell || has_browser || install chromium ||
  missing chromium "in a browser"
if ! has_postgres; then
  # A cluster of its own would start with the package; the tests start theirs.
  if may_install && mkdir -p /etc/postgresql-common; then
    [ -e /etc/postgresql-common/createcluster.conf ] ||
      echo "create_main_cluster = false" > /etc/postgresql-common/createcluster.conf
  fi
  install postgresql || missing postgresql "of the labeling server on PostgreSQL"
fi
exit 0
