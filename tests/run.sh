#!/bin/sh
# Installs what build and tests need (Debian, Ubuntu), builds, and runs everything through ctest.
#
#     sh tests/run.sh                  all of it
#     sh tests/run.sh --fast           the release build's tests without the long ones
#     sh tests/run.sh --only asan      one part: release, clang, slim, asan or tsan; may be repeated
#     sh tests/run.sh --no-install     takes the machine as it is
#     sh tests/run.sh --prefix NAME    build directories NAME, NAME-clang, ... (default: build)
#     sh tests/run.sh --jobs N         tests at once (default: two for each core)
#
# Warnings are errors where the variable CI is set. The exit status is 0 when every part is green.
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
cd "$root"

parts=''
fast=no
install=yes
prefix=build
cores=$(getconf _NPROCESSORS_ONLN)
jobs=$((cores * 2))

while [ $# -gt 0 ]; do
    case $1 in
    --fast) fast=yes ;;
    --only) parts="$parts $2" && shift ;;
    --no-install) install=no ;;
    --prefix) prefix=$2 && shift ;;
    --jobs) jobs=$2 && shift ;;
    *) sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2 && exit 2 ;;
    esac
    shift
done
if [ -z "$parts" ]; then
    if [ $fast = yes ]; then parts=release; else parts='release clang slim asan tsan'; fi
fi

# What the build needs, then what the tests need.
packages='gcc libc6-dev cmake ninja-build pkg-config clang
    libuv1-dev libmbedtls-dev libsodium-dev libc-ares-dev libpcre2-dev libjansson-dev libssl-dev
    libcmocka-dev python3 curl openssl iperf3 iproute2 iptables ipset nftables valgrind util-linux
    shadowsocks-libev simple-obfs shadowsocks-v2ray-plugin dnsmasq-base qrencode procps
    binutils patch xz-utils'
[ "$(uname -m)" = x86_64 ] && packages="$packages libipsec-mb-dev"

install_packages() {
    command -v dpkg-query >/dev/null || return 0
    missing=''
    for package in $packages; do
        dpkg-query -W -f '${Status}\n' "$package" 2>/dev/null | grep -q '^install ok installed' ||
            missing="$missing $package"
    done
    [ -n "$missing" ] || return 0
    as_root=''
    if [ "$(id -u)" != 0 ]; then
        command -v sudo >/dev/null || {
            echo "run.sh: missing:$missing; not root, and no sudo to install them" >&2
            exit 1
        }
        as_root=sudo
    fi
    echo "== installing:$missing"
    $as_root apt-get update -q
    # shellcheck disable=SC2086
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $missing
}

directory_of() {
    if [ "$1" = release ]; then echo "$prefix"; else echo "$prefix-$1"; fi
}

build() {
    part=$1
    shift
    directory=$(directory_of "$part")
    werror=OFF
    [ -n "${CI:-}" ] && werror=ON
    echo "== $part: building in $directory"
    cmake -G Ninja -S . -B "$directory" -DSS_WERROR=$werror "$@" >"$directory.configure.log" 2>&1 || {
        cat "$directory.configure.log"
        return 1
    }
    rm -f "$directory.configure.log"
    ninja -C "$directory" -j "$cores" --quiet
}

failed=''
summary=''

# Tests that bound a time may miss it on a machine that others use: those that failed get one more
# try, alone, and the summary names them. What a sanitizer has reported gets none.
second_try() {
    directory=$(directory_of "$1")
    grep -qE 'ERROR: (Address|Leak)Sanitizer|WARNING: ThreadSanitizer|runtime error:' "$log" && return 1
    echo "== $1: the failed ones again, alone"
    $around ctest --test-dir "$directory" --output-on-failure --timeout 600 --rerun-failed || return 1
    summary="$summary
$1: passed at the second try only:
$(sed -n '/^The following tests FAILED/,$p' "$log" | grep -E '^\s*[0-9]+ - ' || true)"
}

# check <part> <ctest argument>...: runs the tests and keeps what the summary says.
check() {
    part=$1
    shift
    directory=$(directory_of "$part")
    echo "== $part: testing"
    log=$directory/run.log
    { $around ctest --test-dir "$directory" --output-on-failure --timeout 600 -j "$jobs" "$@" || echo failed; } |
        tee "$log"
    if tail -n 1 "$log" | grep -q '^failed$'; then
        second_try "$part" || failed="$failed $part"
    fi
    # An empty run is not a green one.
    grep -q 'tests passed' "$log" || failed="$failed $part"
    summary="$summary
$part: $(grep 'tests passed' "$log" | head -n 1)
$(sed -n '/^The following tests FAILED/,$p' "$log" | grep -E '^\s*[0-9]+ - .*\((Failed|Timeout|SEGFAULT|Not Run|Child|Exit|Subprocess)' || true)
$(grep -h '^SKIPPED' "$directory/Testing/Temporary/LastTest.log" 2>/dev/null | sort -u | sed 's/^/  /' || true)"
}

run_part() {
    around=''
    case $1 in
    release)
        build release -DCMAKE_BUILD_TYPE=Release || return 1
        if [ $fast = yes ]; then
            check release -LE 'valgrind|check' -E 'memory_plateau|interop_large|_2$'
        else
            check release
        fi
        ;;
    clang)
        build clang -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_COMPILER=clang -DSS_WERROR=ON || return 1
        check clang -L unit
        ;;
    slim)
        build slim -DCMAKE_BUILD_TYPE=Release -DSS_WITH_IPSECMB=OFF -DSS_WITH_OPENSSL=OFF || return 1
        check slim -R '^unit_|integration|^interop_self|^idle_memory'
        ;;
    asan)
        build asan -DCMAKE_BUILD_TYPE=RelWithDebInfo -DSS_SANITIZE=address,undefined || return 1
        # What takes long and differs little between one worker and two runs with two.
        check asan -LE 'check' -E \
            'interop_libev|idle_timeout|e2e_(acl|dns|manager|plugin|reload|upstreams|udp)_.*_1$|e2e_reload_1|redir_1|_(plugin|upstreams)_1'
        ;;
    tsan)
        build tsan -DCMAKE_BUILD_TYPE=RelWithDebInfo -DSS_SANITIZE=thread || return 1
        # Its shadow memory does not bear every layout of the address space.
        setarch "$(uname -m)" -R true 2>/dev/null && around="setarch $(uname -m) -R"
        check tsan -R \
            '^unit_|integration|e2e_(random_cut|socks5|half_close|probing|backpressure)_2|^interop_self_2|^redir(_sockets)?_2'
        ;;
    *)
        echo "run.sh: no part is called $1" >&2
        return 1
        ;;
    esac
}

[ $install = yes ] && install_packages
for part in $parts; do
    run_part "$part" || failed="$failed $part"
done

echo
echo "== summary$summary" | sed '/^$/d'
if [ -n "$failed" ]; then
    echo "NOT GREEN:$(printf '%s\n' $failed | sort -u | tr '\n' ' ' | sed 's/^/ /')"
    exit 1
fi
echo "all green:$parts" | sed 's/  */ /g'
