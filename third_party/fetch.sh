#!/bin/sh
# Brings the sources that sources.list pins into DIRECTORY/<folder>, each with Debian's patches.
#
#     sh third_party/fetch.sh DIRECTORY
#
# SS_THIRD_PARTY_FILES  a folder with the archives, asked first; nothing is taken from the network then
# SS_THIRD_PARTY_MIRROR a Debian mirror (default: http://deb.debian.org/debian)
#
# A file counts by its SHA-256 alone, wherever it came from. Ends with 77 when one can't be had.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
directory=${1:?a directory is wanted}
mirror=${SS_THIRD_PARTY_MIRROR:-http://deb.debian.org/debian}
files=${SS_THIRD_PARTY_FILES:-}
kept=$directory/archives

# is_pinned FILE SHA256
is_pinned() {
    [ -f "$1" ] && [ "$(sha256sum <"$1" | cut -d ' ' -f 1)" = "$2" ]
}

# download URL FILE SHA256
download() {
    if [ -x /usr/lib/apt/apt-helper ]; then # it knows the proxies that apt was told of
        (cd "$kept" && /usr/lib/apt/apt-helper -qq download-file "$1" "$2" "SHA256:$3" 2>&1)
    elif command -v curl >/dev/null; then
        curl -fsSL --connect-timeout 10 --retry 2 --max-time 120 -o "$2" "$1"
    else
        wget -q -T 120 -O "$2" "$1"
    fi
}

# obtain PLACE SHA256: the archive is in $archive then.
obtain() {
    name=${1##*/}
    archive=$kept/$name
    is_pinned "$archive" "$2" && return 0
    if [ -n "$files" ]; then
        if ! is_pinned "$files/$name" "$2"; then
            echo "fetch.sh: $files/$name is not there, or not the file that is pinned" >&2
            exit 77
        fi
        cp "$files/$name" "$archive"
        return 0
    fi
    rm -f "$archive"
    download "$mirror/pool/main/$1" "$archive" "$2" >"$archive.log" || :
    if ! is_pinned "$archive" "$2"; then
        cat "$archive.log" >&2
        echo "fetch.sh: $name could not be had from $mirror, or is not the file that is pinned" >&2
        exit 77
    fi
    rm -f "$archive.log"
}

# apply FOLDER: the changes under debian/patches, in the order of their series.
apply() {
    [ -f "$1/debian/patches/series" ] || return 0
    sed 's/#.*//' "$1/debian/patches/series" | while read -r patch _; do
        [ -z "$patch" ] || patch -d "$1" -p1 -s -N <"$1/debian/patches/$patch"
    done
}

mkdir -p "$kept"
pins=$(sed '/^#/d' "$here/sources.list")
printf '%s\n' "$pins" | cut -d ' ' -f 1 | uniq | while read -r folder; do
    printf '%s\n' "$pins" | grep "^$folder " >"$directory/pins"
    cmp -s "$directory/pins" "$directory/$folder/pins" && continue # unpacked before
    rm -rf "${directory:?}/$folder" "$directory/unpacking"
    mkdir "$directory/unpacking"
    while read -r _ sum place; do
        obtain "$place" "$sum"
        case $place in
        *.debian.tar.*) tar -xf "$archive" -C "$directory/unpacking" ;;
        *) tar -xf "$archive" -C "$directory/unpacking" --strip-components=1 ;;
        esac
    done <"$directory/pins"
    apply "$directory/unpacking"
    mv "$directory/pins" "$directory/unpacking/pins"
    mv "$directory/unpacking" "$directory/$folder"
done
