# Sourced by the scripts beside it: where things are, and how steps are reported. Not a program of its own.
set -Eeuo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Tools that are fetched or built once are kept here; scripts/tools fills it.
tools="${XDG_CACHE_HOME:-$HOME/.cache}/entail-tools"
mkdir -p "$tools/bin"
export PATH="$tools/bin:${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"
# The folder that cargo builds into. In CI, where each run has a checkout of its own, it is kept for the packages that
# we depend on.
if [ -n "${CI:-}" ]; then export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-${tools%/*}/entail-target}"; fi
target="${CARGO_TARGET_DIR:-target}"
# Panics print their line without debug information, and CI builds and links faster.
if [ -n "${CI:-}" ]; then export CARGO_PROFILE_DEV_DEBUG="${CARGO_PROFILE_DEV_DEBUG:-0}"; fi
# Colours are for a terminal; in a log they are noise.
if [ -n "${CI:-}" ]; then export CARGO_TERM_COLOR=never NO_COLOR=1; fi

say() { printf '%s\n' "$*"; }
die() { printf '%s\n' "$*" >&2; exit 1; }

# What cannot be run is an error in CI and a printed line elsewhere.
skip() { # skip WHAT WHY
  [ -z "${CI:-}" ] || die "$1: $2, and CI must not pass without it"
  say "SKIPPED $1: $2"
}

# Steps report their time. The name of the one that fails is printed at the end.
began=$SECONDS current='' step_began=$SECONDS
close_step() {
  [ -z "$current" ] || say "--- $current: $((SECONDS - step_began)) s"
  current=''
}
step() { # step NAME
  close_step
  current=$1 step_began=$SECONDS
  printf '\n=== %s\n' "$current"
}
report_steps() { # the trap of a script with steps
  local code=$?
  if [ "$code" -eq 0 ]; then
    close_step
    printf '\n%s passed: %s s\n' "$0" "$((SECONDS - began))"
  else
    printf '\n%s failed in: %s (after %s s, exit code %s)\n' "$0" "${current:-start}" "$((SECONDS - began))" "$code" >&2
  fi
}

# Installs a program from a Debian package if it is missing and that is possible.
need() { # need COMMAND PACKAGE...
  command -v "$1" >/dev/null && return
  apt_install "${@:2}"
  command -v "$1" >/dev/null || die "$1 is needed and could not be installed; install it and run again"
}
# What tests in a browser need: CHROMIUM, and npm.
need_browser() { # need_browser WHAT
  export CHROMIUM="${CHROMIUM:-/usr/bin/chromium}"
  # With fonts, because the tests look at what is legible.
  [ -e "$CHROMIUM" ] || apt_install chromium fonts-dejavu-core fonts-liberation
  command -v npm >/dev/null || apt_install nodejs npm
  [ -e "$CHROMIUM" ] && command -v npm >/dev/null || { skip "$1" 'Chromium or npm is not installed'; return 1; }
}
need_wasi() {
  [ -d "$(rustc --print target-libdir --target wasm32-wasip1)" ] || rustup target add wasm32-wasip1
}
need_pip() { python3 -m pip --version >/dev/null 2>&1 || need pip3 python3-pip; }
apt_install() { # apt_install PACKAGE...
  local as=()
  command -v apt-get >/dev/null || return 0
  if [ "$(id -u)" -ne 0 ]; then
    # Nobody's own machine is changed without asking.
    [ -n "${CI:-}" ] && sudo -n true 2>/dev/null || return 0
    as=(sudo -n)
  fi
  say "installing: $*"
  "${as[@]}" apt-get update -qq
  "${as[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@"
}

# What is released is the same bytes whenever it is made from the same commit: times are that of the commit.
use_commit() {
  VERSION=${VERSION:-$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)}
  REVISION=${REVISION:-$(git rev-parse HEAD 2>/dev/null || echo unknown)}
  SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || true)}
  [ -n "$SOURCE_DATE_EPOCH" ] || die 'no git commit: set SOURCE_DATE_EPOCH, the time of all files in seconds since 1970'
  export VERSION REVISION SOURCE_DATE_EPOCH
}
pack() { # pack TAR FOLDER NAME...: a tar file that depends on nothing but names, contents and the execute bit
  LC_ALL=C tar --create --file "$1" --directory "$2" --format=ustar --sort=name --mtime="@$SOURCE_DATE_EPOCH" \
    --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX -- "${@:3}"
}
pack_gz() { # pack_gz TAR_GZ FOLDER NAME...
  pack "$1.tar" "${@:2}"
  # The time and the name of the tar file are left out.
  gzip -n <"$1.tar" >"$1"
  rm "$1.tar"
}
