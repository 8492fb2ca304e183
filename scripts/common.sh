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
