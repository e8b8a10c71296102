#!/bin/sh
# Builds the programs and shows them at work (Debian, Ubuntu; any system that has the libraries).
#
#     sh quickstart.sh                       server and client on this machine, a page fetched through
#                                            them, and both running until Ctrl-C
#     sh quickstart.sh --once                the same, but ends after the checks
#     sh quickstart.sh server                a real server; its key is made once and kept
#     sh quickstart.sh local 'ss://...'      a client for a server: a SOCKS5 proxy on 127.0.0.1:1080;
#                                            without the URL, it is read from standard input
#
#     --method M     the method; not for local, where the URL names it
#     --port N       server: the port to listen on (8388); local: that of the proxy (1080)
#     --host H       server: the name or address that the URL gives to clients
#     --help         this text
#
# What the build needs is installed with apt-get, as root or through sudo, and only what is missing.
# Where SS_QUICKSTART_BIN names a folder of built programs, nothing is installed or built.
set -eu

say() {
    printf '%s\n' "$*"
}

die() {
    printf 'quickstart.sh: %s\n' "$*" >&2
    exit 1
}

usage() {
    sed -n '2,/^set/s/^# \{0,1\}//p' "$root/quickstart.sh"
}

wrong() {
    printf 'quickstart.sh: %s\n(sh quickstart.sh --help)\n' "$*" >&2
    exit 2
}

# --- what is asked for ---------------------------------------------------------------------------

check_port() {
    case $1 in
    '' | *[!0-9]* | 0* | ??????*) wrong "--port: '$1' is not a port" ;;
    esac
    [ "$1" -le 65535 ] || wrong "--port: '$1' is not a port"
}

parse() {
    task=demo once=no port='' method='' host='' url=''
    case ${1:-} in
    server | local) task=$1 && shift ;;
    esac
    while [ $# -gt 0 ]; do
        case $1 in
        -h | --help)
            usage
            exit 0
            ;;
        --once) once=yes ;;
        --port | --method | --host)
            [ $# -ge 2 ] || wrong "$1 needs a value"
            case $1 in
            --port) check_port "$2" && port=$2 ;;
            --method) method=$2 ;;
            --host) host=$2 ;;
            esac
            shift
            ;;
        ss://*)
            [ -z "$url" ] || wrong 'one ss:// URL, please'
            url=$1
            ;;
        *)
            if [ "$task" = local ]; then
                wrong 'that is neither an option nor an ss:// URL'
            fi
            wrong "'$1' is not known here"
            ;;
        esac
        shift
    done

    case $method in
    *[!a-z0-9-]*) wrong "--method: '$method' is not a method" ;;
    esac
    case $host in
    *[!A-Za-z0-9.:_-]*) wrong "--host: '$host' is neither a name nor an address" ;;
    *:*:*) ;;
    *:*) wrong '--host: the port is given with --port' ;;
    esac
    [ "$task" = local ] || [ -z "$url" ] || wrong 'an ss:// URL is for: sh quickstart.sh local'
    [ "$task" = demo ] || [ "$once" = no ] || wrong '--once is for the demonstration'
    [ "$task" != demo ] || [ -z "$port" ] || wrong '--port is for server and local'
    [ "$task" != local ] || [ -z "$method" ] || wrong '--method: the URL names the method'
    [ "$task" = server ] || [ -z "$host" ] || wrong '--host is for server'
}

# --- packages and programs -----------------------------------------------------------------------

# With what the tests are configured with, so that the folder `build` is the one that they use.
needed='gcc libc6-dev cmake ninja-build pkg-config libuv1-dev libmbedtls-dev libsodium-dev
    libc-ares-dev libpcre2-dev libjansson-dev libcmocka-dev python3 curl'
# Faster ciphers, the QR code, and https for curl.
optional='libssl-dev libipsec-mb-dev qrencode ca-certificates'

missing_of() {
    for package in "$@"; do
        dpkg-query -W -f '${Status}\n' "$package" 2>/dev/null | grep -q '^install ok installed' ||
            printf ' %s' "$package"
    done
}

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

apt_get() {
    # A new machine is often busy with its first updates: waited for, not failed on.
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300 "$@"
}

install_packages() {
    command -v dpkg-query >/dev/null && command -v apt-get >/dev/null || return 0
    # shellcheck disable=SC2086
    missing=$(missing_of $needed)
    # shellcheck disable=SC2086
    wished=$(missing_of $optional)
    # IPsec-MB is for x86-64 alone; asking for it elsewhere would mean an update of apt's lists
    # each time.
    [ "$(dpkg --print-architecture)" = amd64 ] ||
        wished=$(printf '%s' "$wished" | sed 's/ libipsec-mb-dev//')
    [ -n "$missing$wished" ] || return 0

    if [ "$(id -u)" != 0 ] && ! command -v sudo >/dev/null; then
        [ -n "$missing" ] || return 0
        die "these packages are missing, and there is neither root nor sudo to install them:
    apt-get install$missing$wished"
    fi
    say "== installing:$missing$wished"
    apt_get update || say '   (apt-get update failed; trying with the lists that are there)'
    for package in $wished; do
        # Some releases do not have all of them.
        [ -z "$(apt-cache madison "$package")" ] || missing="$missing $package"
    done
    # shellcheck disable=SC2086
    [ -z "$missing" ] || apt_get install -y --no-install-recommends $missing ||
        die 'the packages could not be installed'
}

build() {
    for tool in cmake pkg-config python3 curl; do
        command -v $tool >/dev/null || die "$tool is needed, and not installed"
    done
    say '== building in build'
    # A folder keeps the generator that it began with.
    set -- -S . -B build -DCMAKE_BUILD_TYPE=Release
    [ -e build/CMakeCache.txt ] || ! command -v ninja >/dev/null || set -- -G Ninja "$@"
    configured=$(cmake "$@" 2>&1) || die "configuring failed:
$configured"
    cmake --build build --parallel "$(getconf _NPROCESSORS_ONLN)" \
        --target ss-server ss-local ss-tunnel || die 'building failed'
}

programs() {
    if [ -n "${SS_QUICKSTART_BIN:-}" ]; then
        bin=$(CDPATH='' cd -- "$SS_QUICKSTART_BIN" && pwd) || die 'SS_QUICKSTART_BIN is no folder'
        cd "$root"
    else
        cd "$root"
        install_packages
        build
        bin=$root/build/bin
    fi
    for program in ss-server ss-local; do
        [ -x "$bin/$program" ] || die "there is no $program in $bin"
    done
    # From here on everything is on this machine.
    unset http_proxy https_proxy all_proxy no_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY
}

# --- keys, configuration, URL --------------------------------------------------------------------

# A key of 256 bits, as text.
new_key() {
    head -c 32 /dev/urandom | base64 | tr -d '\n'
}

# AES where the processor does it in hardware.
good_method() {
    if grep -q -w aes /proc/cpuinfo 2>/dev/null; then
        echo aes-256-gcm
    else
        echo chacha20-ietf-poly1305
    fi
}

# write_config <file> <address> <port> <method> [line]...: with a fresh key, and the lines given.
# Nobody else can read the file, and no command line ever shows the key: printf belongs to the shell.
write_config() {
    (
        umask 077
        exec >"$1"
        printf '{\n    "server": "%s",\n    "server_port": %s,\n    "method": "%s",\n' "$2" "$3" "$4"
        printf '    "password": "%s",\n' "$(new_key)"
        shift 4
        [ $# = 0 ] || printf '    %s,\n' "$@"
        printf '    "mode": "tcp_and_udp"\n}\n'
    )
}

show_url() {
    say
    say "$1"
    say
    if ! command -v qrencode >/dev/null; then
        say '(no QR code: qrencode is not installed)'
    elif [ -t 1 ]; then
        printf '%s' "$1" | qrencode -t ANSIUTF8
    else
        printf '%s' "$1" | qrencode -t UTF8
    fi
}

# --- the demonstration ---------------------------------------------------------------------------

work='' running='' serving=no

alive() {
    kill -0 "$1" 2>/dev/null && ! grep -q '^State:[[:space:]]*Z' "/proc/$1/status" 2>/dev/null
}

# until_true <what> <pid or 0> <command>...: waits for the command to be true, ten seconds at most,
# and no longer than the process lives. False when that did not come.
until_true() {
    what=$1 of=$2 turns=200
    shift 2
    while ! "$@" 2>/dev/null; do
        if [ "$of" != 0 ] && ! alive "$of"; then
            return 1
        fi
        turns=$((turns - 1))
        if [ $turns = 0 ]; then
            say "$what: nothing within ten seconds" >&2
            return 1
        fi
        sleep 0.05
    done
}

# start <name> <command>...: in the background, with its log in the work folder. Sets $pid.
start() {
    name=$1
    shift
    "$@" >"$work/$name.log" 2>&1 </dev/null &
    pid=$!
    running="$pid $running"
}

gone() {
    ! alive "$1"
}

# Ends one process, and waits until it has gone. Its exit status is in $ended.
end() {
    kill "$1" 2>/dev/null || true
    until_true "process $1" 0 gone "$1" || kill -KILL "$1" 2>/dev/null || true
    ended=0
    wait "$1" 2>/dev/null || ended=$?
    left=''
    for one in $running; do
        [ "$one" = "$1" ] || left="$left $one"
    done
    running=$left
}

clean_up() {
    status=$?
    trap '' INT TERM HUP
    trap - EXIT
    for one in $running; do
        end "$one"
        if [ $status = 0 ] && [ $ended != 0 ] && [ $ended != 143 ]; then
            say "quickstart.sh: process $one ended with $ended" >&2
            status=1
        fi
    done
    if [ -n "$work" ]; then
        if [ $status != 0 ] && [ $status -lt 128 ]; then
            for log in "$work"/*.log; do
                [ ! -s "$log" ] || {
                    say "--- $(basename "$log")"
                    tail -n 20 "$log"
                } >&2
            done
        fi
        rm -rf "$work"
    fi
    [ $serving = no ] || [ $status != 0 ] || say '== both programs have ended'
    exit $status
}

# Ctrl-C is how the demonstration ends; before that it is a break.
on_signal() {
    [ $serving = no ] || exit 0
    exit $((128 + $1))
}

# Two ports that are free now, for both TCP and UDP.
free_ports() {
    python3 -c '
import socket
held, ports = [], []
while len(ports) < 2:
    stream = socket.socket()
    stream.bind(("127.0.0.1", 0))
    packets = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    held += [stream, packets]
    try:
        packets.bind(stream.getsockname())
    except OSError:
        continue
    ports.append(stream.getsockname()[1])
print(*ports)'
}

# Both programs on free ports. False when one did not come up, as when somebody else was faster
# with a port.
start_pair() {
    # shellcheck disable=SC2046
    set -- $(free_ports)
    server_port=$1 local_port=$2
    write_config "$work/server.json" 127.0.0.1 "$server_port" "$method"

    start ss-server "$bin/ss-server" -c "$work/server.json"
    server_pid=$pid
    if ! until_true ss-server "$pid" grep -q "listening at .*:$server_port" "$work/ss-server.log"; then
        end "$server_pid"
        return 1
    fi
    start ss-local "$bin/ss-local" -c "$work/server.json" -b 127.0.0.1 -l "$local_port"
    local_pid=$pid
    if ! until_true ss-local "$pid" grep -q "listening at .*:$local_port" "$work/ss-local.log"; then
        end "$local_pid"
        end "$server_pid"
        return 1
    fi
}

start_web_server() {
    mkdir "$work/web"
    head -c 1048576 /dev/urandom >"$work/web/page"
    start web-server python3 -u -m http.server --bind 127.0.0.1 --directory "$work/web" 0
    web_pid=$pid
    until_true 'the web server' "$pid" grep -q ' port [0-9]' "$work/web-server.log" ||
        die 'the web server did not start'
    web_port=$(sed -n 's/.* port \([0-9]*\).*/\1/p' "$work/web-server.log" | head -n 1)
}

checksum() {
    sha256sum <"$1" | cut -d ' ' -f 1
}

fetch_page() {
    say "== fetching a page of $(($(wc -c <"$work/web/page"))) bytes through 127.0.0.1:$local_port"
    curl -q -fsS --noproxy '' --max-time 60 -x "socks5h://127.0.0.1:$local_port" \
        -o "$work/page" "http://127.0.0.1:$web_port/page" || die 'the page did not come through'
    sent=$(checksum "$work/web/page") came=$(checksum "$work/page")
    say "   original  $(($(wc -c <"$work/web/page"))) bytes, sha256 $sent"
    say "   received  $(($(wc -c <"$work/page"))) bytes, sha256 $came"
    [ "$sent" = "$came" ] || die 'what was received is not the original'

    # What the server itself counted.
    kill -USR1 "$server_pid"
    until_true 'the count' "$server_pid" grep -q 'traffic: sessions' "$work/ss-server.log" ||
        die 'ss-server does not tell its traffic'
    say "   ss-server $(sed -n 's/.*traffic: sessions/sessions/p' "$work/ss-server.log")"
    end "$web_pid"
}

demo() {
    method=${method:-$(good_method)}
    work=$(mktemp -d)
    write_config "$work/check.json" 127.0.0.1 1 "$method"
    "$bin/ss-server" -c "$work/check.json" --check-config >/dev/null || die 'that can not be served'

    turns_left=5
    until start_pair; do
        turns_left=$((turns_left - 1))
        [ $turns_left -gt 0 ] || die 'ss-server and ss-local do not start'
    done
    say "== ss-server on 127.0.0.1:$server_port with $method and a fresh key, ss-local on 127.0.0.1:$local_port"
    start_web_server
    fetch_page
    url=$("$bin/ss-server" -c "$work/server.json" --print-url) || die 'there is no ss:// URL'
    show_url "$url"
    [ $once = no ] || return 0

    serving=yes
    say "== both programs run until Ctrl-C; the proxy is socks5h://127.0.0.1:$local_port, as in"
    say "   curl --noproxy '' -x socks5h://127.0.0.1:$local_port https://example.com/"
    while alive "$server_pid" && alive "$local_pid"; do
        # In the background, because a trap runs at once only while the shell waits.
        sleep 1 &
        running="$! $running"
        wait $!
        running=${running#* }
    done
    serving=no
    die 'a program has ended by itself'
}

# --- a real server, a real client ----------------------------------------------------------------

# The address from which this machine would send to the outside; nothing is sent.
own_address() {
    python3 -c '
import socket
for family, outside in (socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1"):
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((outside, 9))
        except OSError:
            continue
        print(probe.getsockname()[0])
        break' 2>/dev/null
}

server() {
    [ -n "${XDG_CONFIG_HOME:-}${HOME:-}" ] || die 'HOME is not set; the key needs a place'
    state=${XDG_CONFIG_HOME:-$HOME/.config}/shadowsocks-uv
    config=$state/server.json
    if [ -e "$config" ]; then
        say "== the key and the settings are those of $config"
        chmod 600 "$config"
    else
        say "== making a key; it is kept in $config"
        (umask 077 && mkdir -p "$state")
        # One socket serves both families where the machine has IPv6.
        any=0.0.0.0
        grep -q . /proc/net/if_inet6 2>/dev/null && any=::
        work=$(mktemp -d "$state/new.XXXXXX")
        # Clients reach the world, not this machine and its network.
        write_config "$work/server.json" "$any" "${port:-8388}" "${method:-$(good_method)}" \
            '"block_local": true'
        "$bin/ss-server" -c "$work/server.json" --check-config >/dev/null || die 'that can not be served'
        mv "$work/server.json" "$config"
        rm -rf "$work"
    fi

    # What is given on the command line beats the file, for this run.
    set -- -c "$config"
    [ -z "$port" ] || set -- "$@" -p "$port"
    [ -z "$method" ] || set -- "$@" -m "$method"
    [ -n "$host" ] || host=$(own_address)
    [ -n "$host" ] || {
        host=127.0.0.1
        say '== this machine has no address but its own; give one with --host'
    }
    url=$("$bin/ss-server" "$@" -s "$host" --print-url) || die 'there is no ss:// URL'
    show_url "$url"
    say '== if clients reach this machine by another address, give it with --host'
    say '== the server runs until Ctrl-C'
    # Nobody, once the ports are bound.
    [ "$(id -u)" != 0 ] || set -- "$@" -a nobody
    trap - EXIT INT TERM HUP
    exec "$bin/ss-server" "$@"
}

client() {
    port=${port:-1080}
    say "== a SOCKS5 proxy on 127.0.0.1:$port until Ctrl-C, as in"
    say "   curl --noproxy '' -x socks5h://127.0.0.1:$port https://example.com/"
    trap - EXIT INT TERM HUP
    # ss-local blanks the URL out of its command line.
    exec "$bin/ss-local" -c "$url" -b 127.0.0.1 -l "$port" -u
}

root=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
parse "$@"
trap clean_up EXIT
trap 'on_signal 2' INT
trap 'on_signal 15' TERM
trap 'on_signal 1' HUP

if [ "$task" = local ] && [ -z "$url" ]; then
    [ ! -t 0 ] || printf 'The ss:// URL: '
    IFS= read -r url || true
    case $url in
    ss://*) ;;
    *) wrong 'that is not an ss:// URL' ;;
    esac
fi
programs
case $task in
demo) demo ;;
server) server ;;
local) client ;;
esac
