#!/bin/sh
# Installs Debian's Chromium if there is none, for `make page`.
set -e
if command -v chromium >/dev/null 2>&1 || command -v chromium-browser >/dev/null 2>&1 || command -v google-chrome >/dev/null 2>&1; then
    exit 0
fi
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null 2>&1; then
    echo "there is no Chromium, and it cannot be installed here: its tests will be skipped" >&2
    exit 0
fi
if ! { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core >/dev/null; }; then
    echo "Chromium could not be installed: its tests will be skipped" >&2
fi
