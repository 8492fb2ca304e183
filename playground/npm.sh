# shellcheck shell=bash
# Sourced by build and test, in the folder of package.json.

# Installs what package-lock.json lists, once for each list of versions. Prints the folder.
install_npm() { # install_npm FOLDER
  local folder
  folder="$1/node-$(sha256sum package-lock.json | cut -c1-16)"
  if [ ! -e "$folder/done" ]; then
    rm -rf "$folder" && mkdir -p "$folder" && cp package{,-lock}.json "$folder" &&
      npm ci --prefix "$folder" --silent --no-audit --no-fund --no-update-notifier >&2 && touch "$folder/done" ||
      { echo 'npm cannot install what playground/package.json lists' >&2; return 2; }
  fi
  echo "$folder"
}
