"""ss-nat by itself, and the rules of docs/router.md.

    python3 tests/test_ss_nat.py --bin build/bin [unittest's own options and names]
"""

import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from support import case, programs, router, router_case, udp  # noqa: E402
from support.case import settings  # noqa: E402
from support.router_case import BODY, KINDS, RouterCase, nat, need  # noqa: E402

rig = None


def setUpModule():
    global rig
    rig = router_case.make_rig()


class Script(RouterCase):
    """ss-nat by itself."""

    def setUp(self):
        if self.sanitized:
            self.skipTest("the script is the same in every build")
        super().setUp()

    OTHERS = """
table inet mine {
	set ss_spec_like {
		type ipv4_addr
		elements = { 192.0.2.7 }
	}
	chain in {
		type filter hook input priority 0; policy accept;
		ip saddr @ss_spec_like tcp dport 22 accept
	}
}
"""

    def others(self):
        """Rules that are not the script's."""
        need("nft")
        rig.nft(self.OTHERS)
        if shutil.which("iptables"):
            for words in ("iptables -t nat -A PREROUTING -p tcp --dport 80 -m comment --comment "
                          "SS_SPEC_like -j REDIRECT --to-ports 81",
                          "iptables -t mangle -N SS_MINE", "iptables -t mangle -A SS_MINE -j RETURN",
                          "iptables -t mangle -A PREROUTING -i lan0 -j SS_MINE",
                          "ip6tables -t nat -A OUTPUT -p tcp --dport 80 -j ACCEPT"):
                subprocess.run(words.split(), check=True, capture_output=True)

    LINES = (["-u", "-o", "-6"], [], ["-U", "-S", "45.0.0.8", "-L", "1090"],
             ["-u", "-a", "w192.168.7.2 fd77::2", "-b", "45.1.0.0/16 2a0b::/32", "-w", "45.1.2.0/24",
              "-6"])

    def test_start_and_stop(self):
        """Twice is as once, a stop leaves the rules as they were, and a second stop too."""
        self.others()
        before = rig.rules()
        for kind in KINDS:
            for words in self.LINES:
                with self.subTest(kind=kind, words=words):
                    self.rules(kind, *words)
                    once = rig.rules()
                    self.assertNotEqual(once, before)
                    self.rules(kind, *words)
                    self.assertEqual(rig.rules(), once)
                    nat("-f")
                    self.assertEqual(rig.rules(), before)
                    nat("-f")
                    self.assertEqual(rig.rules(), before)

    def test_either_takes_the_other_away(self):
        self.others()
        before = rig.rules()
        for first, second in (("iptables", "nft"), ("nft", "iptables")):
            self.rules(second, "-u", "-6")
            alone = rig.rules()
            nat("-f")
            self.rules(first, "-u", "-o", "-6")
            self.rules(second, "-u", "-6")
            self.assertEqual(rig.rules(), alone)
            nat("-f")
            self.assertEqual(rig.rules(), before)

    def test_a_dry_run(self):
        """-n changes nothing, and what it shows does the same."""
        self.others()
        before = rig.rules()
        for kind in KINDS:
            for words in self.LINES:
                with self.subTest(kind=kind, words=words):
                    kinds = ["-N"] if kind == "nft" else []
                    line = [*kinds, "-s", router.SERVER, "-l", self.port, "-I", router.LAN_NAME]
                    shown = nat("-n", *line, *words).stdout
                    self.assertEqual(rig.rules(), before)
                    subprocess.run(["sh"], input=shown, text=True, check=True, capture_output=True)
                    by_hand = rig.rules()
                    nat("-f")
                    nat(*line, *words)
                    self.assertEqual(rig.rules(), by_hand)
                    self.assertIn("SS_SPEC" if kind == "iptables" else "ss_spec",
                                  nat("-n", "-f").stdout)
                    self.assertEqual(rig.rules(), by_hand)
                    nat("-f")

    def test_failures_leave_nothing(self):
        """Whatever goes wrong, and wherever: status, a line, and the rules as before."""
        self.others()
        before = rig.rules()
        base = ["-s", router.SERVER, "-l", self.port, "-I", router.LAN_NAME]
        bad = [["-s", router.SERVER, "-l", "0"], ["-s", router.SERVER, "-l", "70000"],
               ["-s", router.SERVER, "-l", "10x"], ["-s", "no.such.name.test", "-l", "1080"],
               [*base, "-a", "192.168.7.2"], [*base, "-a", "wx"], [*base, "-b", "1.2.3"],
               [*base, "-w", "1.2.3.4; flush ruleset"], [*base, "-i", "/nonexistent"],
               [*base, "-N", "-e", "--dport 80"], [*base, "-I", "a b"], [*base, "-m", "x"],
               [*base, "-U", "-L", "1090"], [*base, "-U", "-S", "45.0.0.8"],
               [*base, "-N", "-b", "1.2.3.4/40"], [*base, "-N", "-u", "-6", "-b", "::/200"]]
        if shutil.which("iptables") and shutil.which("ipset"):
            bad += [[*base, "-e", "--nonsense"], [*base, "-b", "1.2.3.4/40"],
                    [*base, "-u", "-6", "-b", "::/200"], [*base, "-u", "-e", "-m nonsense"]]
        for words in bad:
            with self.subTest(words=words):
                done = nat(*words, check=False)
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertIn("ss-nat: ", done.stderr)
                self.assertEqual(rig.rules(), before)
        for words in ([], ["-s", router.SERVER], ["-l", "1080"]):
            done = nat(*words, check=False)
            self.assertEqual((done.returncode, done.stdout.split()[0]), (2, "Usage:"))
        self.assertEqual(nat("-h").stdout.split()[0], "Usage:")

    # The n-th call of a tool that makes something fails; looking and taking away work.
    STAND_IN = """#!/bin/sh
case " $* " in *" -X "*|*" -F "*|*" -D "*|*" del "*|*" list "*|*" delete "*) exec %(tool)s "$@";; esac
n=$(cat "$COUNT")
echo $((n - 1)) >"$COUNT"
[ "$n" -ne 0 ] || { %(fail)s; exit 3; }
exec %(tool)s "$@"
"""

    def try_each_step(self, kind, fail, check):
        """Starts again and again, with `fail` done at the first step, the second, and so on."""
        folder = programs.scratch_directory()
        tools = ["ip"] + (["nft"] if kind == "nft" else ["iptables", "ip6tables", "ipset"])
        need(*tools)
        for tool in tools:
            with open(os.path.join(folder, tool), "w") as file:
                file.write(self.STAND_IN % {"tool": shutil.which(tool), "fail": fail})
            os.chmod(os.path.join(folder, tool), 0o755)
        count = os.path.join(folder, "count")
        for number in range(60):
            with open(count, "w") as file:
                file.write("%d\n" % number)
            words = (["-N"] if kind == "nft" else []) + [
                "-s", router.SERVER, "-l", "1080", "-I", router.LAN_NAME, "-u", "-o", "-6"]
            done = subprocess.run(
                [programs.find(settings.bin, "ss-nat"), *words], capture_output=True, text=True,
                env={**os.environ, "PATH": folder + ":" + os.environ["PATH"], "COUNT": count})
            if done.returncode == 0:
                break
            check(done)
        self.assertGreater(number, 5)
        nat("-f")

    def test_a_step_that_fails(self):
        """What was made before is taken away."""
        self.others()
        before = rig.rules()

        def check(done):
            self.assertEqual((done.returncode, rig.rules()), (1, before), done.stderr)

        for kind in KINDS:
            self.try_each_step(kind, "echo broken >&2", check)
            self.assertEqual(rig.rules(), before)

    def test_killed_at_a_step(self):
        """What kill -9 leaves is found by the next stop."""
        self.others()
        before = rig.rules()

        def check(done):
            self.assertEqual(done.returncode, -9)
            nat("-f")
            self.assertEqual(rig.rules(), before)

        for kind in KINDS:
            self.try_each_step(kind, "kill -9 $PPID", check)
            self.assertEqual(rig.rules(), before)

    def test_large_lists(self):
        """More networks than a set holds by itself."""
        listed = os.path.join(programs.scratch_directory(), "list")
        with open(listed, "w") as file:
            for number in range(70000):
                file.write("46.%d.%d.%d/31\n" % (number >> 15, number >> 7 & 255, number * 2 & 255))
        before = rig.rules()
        for kind in KINDS:
            self.rules(kind, "-i", listed)
            nat("-f")
            self.assertEqual(rig.rules(), before)

    def test_the_choice_of_tools(self):
        """iptables where it and ipset are, nft otherwise; words of -e are for iptables."""
        folder = programs.scratch_directory()
        for tool in ("sh", "awk", "sed", "cat", "grep", "id", "sort", "tr", "nft", "ip"):
            found = shutil.which(tool)
            if found:
                os.symlink(found, os.path.join(folder, tool))
        script = programs.find(settings.bin, "ss-nat")
        env = {**os.environ, "PATH": folder}
        line = [script, "-n", "-s", "45.0.0.2", "-l", "1080"]
        done = subprocess.run(line, capture_output=True, text=True, env=env)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("nft -f -", done.stdout)
        done = subprocess.run([*line, "-e", "--dport 80"], capture_output=True, text=True, env=env)
        self.assertEqual(done.returncode, 1)
        need("iptables", "ipset")
        self.assertIn("iptables -w -t nat", nat(*line[1:]).stdout)
        self.assertIn("nft -f -", nat(*line[1:], "-N").stdout)


    def test_the_include_file(self):
        """OpenWrt's older firewall drops all rules when it is loaded again, and runs this."""
        need("iptables", "ip6tables", "ipset")
        folder = programs.scratch_directory()
        include = os.path.join(folder, "include")
        with open(os.path.join(folder, "uci"), "w") as file:
            file.write('#!/bin/sh\n[ "$*" = "-q get firewall.shadowsocks.path" ] && echo %s\n'
                       % include)
        os.chmod(os.path.join(folder, "uci"), 0o755)
        env = {**os.environ, "PATH": folder + ":" + os.environ["PATH"]}
        script = programs.find(settings.bin, "ss-nat")
        words = ["-s", router.SERVER, "-l", "1080", "-I", router.LAN_NAME, "-u", "-o", "-6", "-a",
                 "w192.168.7.2"]
        subprocess.run([script, *words], env=env, check=True)
        whole = rig.rules()
        for tool in ("iptables", "ip6tables"):
            for table in ("nat", "mangle"):
                for what in ("-F", "-X"):
                    subprocess.run([tool, "-t", table, what], check=True)
        self.assertNotEqual(rig.rules(), whole)
        for _ in range(2):
            subprocess.run(["sh", include], check=True)
            self.assertEqual(rig.rules(), whole)
        subprocess.run([script, "-f"], env=env, check=True)
        with open(include) as file:
            self.assertEqual(file.read(), "#!/bin/sh\n")


class Recipes(RouterCase):
    """What docs/router.md says, with the names that are used here."""

    @staticmethod
    def page(language, containing):
        with open(os.path.join(settings.source, "docs", "router.md")) as file:
            blocks = file.read().split("```")[1::2]
        text = next(block for block in blocks
                    if block.startswith(language) and containing in block)
        return text.split("\n", 1)[1]

    def fill(self, text):
        for example, here in (("br-lan", router.LAN_NAME), ('"wan"', '"wan0"'),
                              (":1080", ":%d" % self.port), ("192.0.2.10", router.SERVER)):
            text = text.replace(example, here)
        return text

    def test_the_routers_own_datagrams(self):
        self.internet()
        redir = self.redir("-u", "--outbound-fwmark", "0x2a")
        self.rules("nft", "-u")
        rig.nft(self.fill(self.page("text", "own_udp")))
        target = self.udp_target()
        own = self.udp_client(namespace=rig.router, host=router.WAN)
        for number in range(5):
            self.assert_echoes_from(own, (router.host(number), target.port))
        self.assertEqual(target.sources, {router.SERVER_SOURCE})
        self.assert_echoes_from(self.udp_client(), (router.HOST, target.port))
        self.assertEqual(redir.log_lines("ERROR"), [])

    def test_every_question_to_the_router(self):
        self.internet()
        self.redir("-u")
        self.rules("nft", "-u")
        for line in self.fill(self.page("sh", "udp dport 53 redirect")).strip().splitlines():
            subprocess.run(line.split(), check=True)
        self.at(rig.router, udp.Target, lambda data, source: b"the router: " + data,
                host=router.LAN, port=53)
        client = self.udp_client()
        client.sendto(b"question", (router.HOST, 53))
        self.assertEqual(client.recvfrom(100), (b"the router: question", (router.HOST, 53)))
        other = self.udp_target()
        self.assert_echoes_from(client, (router.HOST, other.port))
        self.assertEqual(other.sources, {router.SERVER_SOURCE})

    def test_sets_are_changed_while_all_goes_on(self):
        self.internet()
        self.redir("-u")
        self.rules("nft", "-u")
        self.assert_seen_from(router.HOST, router.SERVER_SOURCE)
        add, delete, force = [
            line.split("#")[0].replace("203.0.113.0/24", "45.1.0.0/16").replace(
                "198.51.100.7", router.HOST)
            for line in self.page("sh", "nft add element").splitlines()[:3]]
        subprocess.run(["sh", "-c", add], check=True)
        self.assert_seen_from(router.HOST, router.CLIENT)
        subprocess.run(["sh", "-c", force], check=True)
        self.assert_seen_from(router.HOST, router.SERVER_SOURCE)
        self.assert_seen_from(router.host(3), router.CLIENT)
        subprocess.run(["sh", "-c", delete], check=True)
        self.assert_seen_from(router.host(3), router.SERVER_SOURCE)

    def test_tproxy_alone(self):
        self.internet()
        self.redir("-u", "-T")
        rig.nft(self.fill(self.page("text", "table ip proxy")))
        for line in self.page("sh", "ip rule add").splitlines():
            if line.startswith("ip "):
                subprocess.run(line.split(), check=True)
        target = self.udp_target()
        self.assert_echoes_from(self.udp_client(), (router.HOST, target.port))
        self.assert_downloads(router.HOST, self.tcp_target(router.checksum_of(BODY)))
        self.assertEqual(target.sources, {router.SERVER_SOURCE})


if __name__ == "__main__":
    case.main()
