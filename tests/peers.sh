#!/bin/sh
# Installs the other implementations that tests/interop_peers.py runs against ours, each by its
# package name with its ecosystem's ordinary client, at the version named here.
#
#     sh tests/peers.sh                        all of them
#     sh tests/peers.sh shadowsocks-rust ...   those that are named
#
# Only where that client exists (apt-get, cargo, go); a peer that cannot be had is named, and the
# others are installed all the same. Programs land in /usr/bin, ~/.cargo/bin and ~/go/bin. The exit
# status is 0 when all that was asked for is there. Building takes some ten minutes a peer and one
# core; PEERS_JOBS gives it more.
set -eu

RUST_VERSION=1.24.0     # needs Rust 1.88
SHADOWSOCKS_GO=v1.14.0
SING_BOX=v1.14.1        # needs Go 1.25.5

jobs=${PEERS_JOBS:-1}
missing=''

say() { echo "peers.sh: $*"; }

have() {
    command -v "$1" >/dev/null 2>&1 && return 0
    say "$2 is left out: there is no $1 here"
    return 1
}

shadowsocks_libev() {
    if [ -x /usr/bin/ss-server ]; then return 0; fi
    have apt-get shadowsocks-libev || return 1
    as_root=''
    [ "$(id -u)" = 0 ] || as_root=sudo
    $as_root apt-get update -q &&
        $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends \
            shadowsocks-libev
}

# The extra features: xchacha20-ietf-poly1305, 2022-blake3-chacha8-poly1305, refusing replays.
shadowsocks_rust() {
    have cargo shadowsocks-rust || return 1
    cargo install shadowsocks-rust --version "$RUST_VERSION" --locked -j "$jobs" \
        --no-default-features --features \
"logging,local,server,local-tunnel,multi-threaded,stream-cipher,aead-cipher,aead-cipher-extra,\
aead-cipher-2022,aead-cipher-2022-extra,security-replay-attack-detect"
}

go_install() {
    have go "$1" || return 1
    GOFLAGS="-p=$jobs -buildvcs=false" go install "$2"
}

# Not by `go install`: that also asks for the list of all versions, which not every proxy has of
# this module. A module that requires the one version needs no list.
shadowsocks_go() {
    have go shadowsocks-go || return 1
    module=github.com/database64128/shadowsocks-go
    target=$(go env GOBIN)
    target=${target:-$(go env GOPATH)/bin}
    scratch=$(mktemp -d)
    failed=0
    (
        cd "$scratch" &&
            printf 'package peers\n' >peers.go &&
            go mod init peers.test &&
            go mod edit -require="$module@$SHADOWSOCKS_GO" &&
            GOFLAGS="-p=$jobs -buildvcs=false -mod=mod" \
                go build -o "$target/shadowsocks-go" "$module/cmd/shadowsocks-go"
    ) || failed=1
    rm -r "$scratch"
    return $failed
}

sing_box() {
    go_install sing-box "github.com/sagernet/sing-box/cmd/sing-box@$SING_BOX"
}

[ $# -gt 0 ] || set -- shadowsocks-libev shadowsocks-rust shadowsocks-go sing-box
for peer in "$@"; do
    case $peer in
    shadowsocks-libev | shadowsocks-rust | shadowsocks-go | sing-box) ;;
    *)
        sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
        exit 2
        ;;
    esac
    say "$peer"
    "$(echo "$peer" | tr - _)" || missing="$missing $peer"
done
if [ -n "$missing" ]; then
    say "not installed:$missing"
    exit 1
fi
