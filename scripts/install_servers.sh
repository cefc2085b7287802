#!/bin/sh
# Installs Debian's nginx and Prometheus if there are none, for `make servers`.
set -e
if command -v nginx >/dev/null 2>&1 && command -v prometheus >/dev/null 2>&1; then
    exit 0
fi
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null 2>&1; then
    echo "nginx or prometheus is missing; install them, or run this as root on Debian" >&2
    exit 1
fi
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends nginx-light prometheus >/dev/null
