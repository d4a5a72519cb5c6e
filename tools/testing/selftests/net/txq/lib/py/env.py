# SPDX-License-Identifier: GPL-2.0

"""
TxqEnv: NetDrvEpEnv with the settings, the server on the peer, the counters
of the device and the reports of the txq tests.
"""

import json
import os
import shlex
import socket
import struct
import subprocess
import sys
import tempfile

from lib.py import CmdExitFailure, KsftFailEx, KsftNamedVariant, NetNS
from lib.py import cmd, defer, fd_read_timeout, ip, ksft_pr, ksft_variants
from lib.py import NetDrvEpEnv
from . import variant

# Of all tests here, so that a misspelt one is told from another test's
SCENARIOS = ("send64k", "rr", "rr_loaded",
             "tx1", "tx5", "tx12", "rx5",
             "sndbuf4k", "sndbuf8k", "sndbuf16k")

KSFT_SKIP = 4

# Student's t, 99 %, for the mean of the ten intervals of a run
INTERVALS = 10
T99 = 3.250


class _VethPair:
    """ A veth pair, in the place where NetDrvEpEnv puts netdevsim """

    def __init__(self, netns):
        self.nsims = [self]
        free = [i for i in range(100)
                if not os.path.exists(f"/sys/class/net/txq{i}")]
        self.ifname = f"txq{free[0]}"
        self.peer = "txq_peer"
        self.dev = None
        ip(f"link add name {self.ifname} type veth "
           f"peer name {self.peer} netns {netns.name}")

    def remove(self):
        """ Takes the peer with it """
        ip(f"link del dev {self.ifname}")


class TxqEnv(NetDrvEpEnv):
    """
    Environment for the txq tests.

    Without NETIF the device is one end of a veth pair, which carries traffic
    at any rate and knows offloads; the other end is in a namespace.
    """

    # Set aside for benchmarks (RFC 2544, RFC 5180): the host has them not
    nsim_v4_pfx = "198.18.0."
    nsim_v6_pfx = "2001:2::"

    def __init__(self, src_path):
        self._netns = None
        self._ns = None
        self._ns_peer = None
        self.remote = None
        self._server = None
        self._server_path = None
        self._control = None
        self._port = None
        self._raw = None
        self._no_ipv6 = False

        super().__init__(src_path)
        if self._no_ipv6:
            self.addr_v["6"] = self.remote_addr_v["6"] = None

        self.secs = self._number("TXQ_SECS", 5, above=0)
        self.warmup = self._number("TXQ_WARMUP", 0.5)
        self.seed = self._number("TXQ_SEED", 1, kind=int)
        self.rr_gap_us = self._number("TXQ_RR_GAP_US", 500, kind=int)
        self.min_mbps = self._number("TXQ_MIN_MBPS", 0)
        self.min_samples = self._number("TXQ_MIN_SAMPLES", 100, kind=int)
        self.variants = [v.strip() for v in self.env.get(
                         "TXQ_VARIANTS", "default").split(";") if v.strip()]
        for name in self.variants:
            variant.parse(name)

    def __del__(self):
        self._stop_server()
        super().__del__()

    def _number(self, name, default, kind=float, above=None):
        text = self.env.get(name) or default
        try:
            value = kind(text)
        except ValueError as exc:
            raise ValueError(f"{name}: '{text}' is not a number") from exc
        if not (value >= 0 if above is None else value > above):
            raise ValueError(f"{name}: {text} is too small")
        return value

    def create_local(self):
        """ Called by NetDrvEpEnv when there is no NETIF """
        self._netns = NetNS()
        try:
            self._ns = _VethPair(self._netns)
        except CmdExitFailure as exc:
            print("1..0 # SKIP no NETIF, and cannot create a veth pair: "
                  + exc.cmd.stderr.strip().replace("\n", " "))
            sys.exit(KSFT_SKIP)

        for dev, host, netns in ((self._ns.ifname, 1, None),
                                 (self._ns.peer, 2, self._netns)):
            ip(f"addr add dev {dev} {self.nsim_v4_pfx}{host}/24", ns=netns)
            # It is fine to do without IPv6, as long as no variant wants it
            try:
                ip(f"-6 addr add dev {dev} {self.nsim_v6_pfx}{host}/64 nodad",
                   ns=netns)
            except CmdExitFailure:
                self._no_ipv6 = True
            ip(f"link set dev {dev} up", ns=netns)
        self._ns.dev = ip(f"-d link show dev {self._ns.ifname}", json=True)[0]

    def cases(self, funcs):
        """ The tests to run: those in TXQ_SCENARIOS, in all variants """
        wanted = self.env.get("TXQ_SCENARIOS", "").replace(",", " ").split()
        for name in wanted:
            if name not in SCENARIOS:
                raise ValueError(f"TXQ_SCENARIOS: no scenario '{name}'")
        named = [KsftNamedVariant(v, v) for v in self.variants]
        cases = [ksft_variants(named)(func) for func in funcs
                 if not wanted or func.__name__ in wanted]
        if not cases:
            print("1..0 # SKIP TXQ_SCENARIOS has none of this test's")
            sys.exit(KSFT_SKIP)
        return cases

    def apply(self, text):
        """ Set up the device for a variant, until the test is over """
        variant.apply(self, text)

    # The server

    def _start_server(self):
        if self._server and self._server.proc.poll() is None:
            return
        self._stop_server()
        if not self._server_path:
            path = self.env.get("TXQ_SERVER")
            self._server_path = path or self.remote.deploy(
                self._worker("txq_server"))
        self._server = cmd(f"{shlex.quote(self._server_path)} --control",
                           background=True, host=self.remote)
        try:
            out = fd_read_timeout(self._server.proc.stdout.fileno(), 15)
            if not out.startswith(b"port "):
                err = self._server.proc.stderr.read().decode()
                raise KsftFailEx("no server on the peer: " + err.strip())
            self._port = int(out.split()[1])
            self._control = socket.create_connection(
                (self.remote_addr, self._port), timeout=15)
        except BaseException:
            self._server.proc.kill()
            self._stop_server()
            raise

    def _stop_server(self):
        """ The end of the control connection is the end of the server """
        if self._control:
            self._control.close()
            self._control = None
        if self._server:
            proc = self._server.proc
            try:
                proc.communicate(timeout=5)
            except subprocess.TimeoutExpired:
                proc.kill()
                proc.communicate()
            self._server = None

    def _worker(self, name):
        path = self.test_dir / name
        if not path.exists():
            raise KsftFailEx(f"{path} is missing, run make in that directory")
        return path.as_posix()

    # The clients

    def start(self, worker, *args):
        """ Start txq_stream or txq_rr against the server on the peer """
        self._start_server()
        argv = [self._worker(worker), "--warmup", str(self.warmup),
                "--seed", str(self.seed), *args,
                self.remote_addr, str(self._port)]
        proc = cmd(argv, background=True)
        proc.head = ""
        defer(_stop, proc)
        if worker == "txq_stream":
            try:
                out = fd_read_timeout(proc.proc.stdout.fileno(), 20).decode()
            except TimeoutError as exc:
                raise KsftFailEx("streams do not start") from exc
            if not out.startswith("started\n"):
                self.finish(proc)
                raise KsftFailEx("streams do not start")
            # Nothing, but for a run that is over before we looked
            proc.head = out.partition("\n")[2]
        return proc

    def finish(self, proc, stop=False):
        """ Wait for the worker, or make it stop, and return its figures """
        if stop:
            proc.proc.terminate()
        proc.process(terminate=False, fail=True,
                     timeout=self.secs * 2 + self.warmup + 60)
        return json.loads(proc.head + proc.stdout)

    def counters(self):
        """
        Packets sent and received, frames on the wire and interrupts.

        Frames are counted by the side that receives them: the side that
        sends may count what it segments as one.
        """
        self._control.sendall(b"s")
        data = b""
        while len(data) < 16:
            more = self._control.recv(16 - len(data))
            if not more:
                raise KsftFailEx("the server on the peer is gone")
            data += more
        peer_rx = struct.unpack(">QQ", data)[0]

        with open("/proc/net/dev", encoding="ascii") as file:
            for line in file:
                name, _, row = line.partition(":")
                if name.strip() == self.ifname:
                    row = [int(x) for x in row.split()]
                    break
            else:
                raise KsftFailEx(f"{self.ifname} is gone")
        return {"rx": row[1], "tx": row[9], "frames": row[1] + peer_rx,
                "irqs": self._irqs()}

    def _irqs(self):
        """ Interrupts so far: the platform knows them, or /proc does """
        if self.env.get("TXQ_BUSY_FILE"):
            with open(self.env["TXQ_BUSY_FILE"], encoding="ascii") as file:
                for line in file:
                    if line.startswith("irqs "):
                        return int(line.split()[1])
        return _irqs(self.ifname)

    # The reports

    def raw(self, scenario, name):
        """ Path for the raw samples of a test """
        if not self._raw:
            self._raw = self.env.get("TXQ_RAW")
            if self._raw:
                os.makedirs(self._raw, exist_ok=True)
            else:
                self._raw = tempfile.mkdtemp(prefix="txq-")
                ksft_pr(f"Raw samples: {self._raw}")
        return os.path.join(self._raw, f"{scenario}-{name}.txt")

    def report(self, scenario, name, figures):
        """ Print (metric, unit, value) figures, None is left out """
        figures = [(metric, unit, round(value, 3))
                   for metric, unit, value in figures if value is not None]
        for metric, unit, value in figures:
            ksft_pr(f"{scenario} {name} {metric} {value} {unit}")
        if not self.env.get("TXQ_JSON"):
            return
        with open(self.env["TXQ_JSON"], "a", encoding="ascii") as file:
            for metric, unit, value in figures:
                line = {"scenario": scenario, "variant": name,
                        "metric": metric, "unit": unit, "value": value}
                file.write(json.dumps(line) + "\n")


def _stop(proc):
    """ Of a test that did not come to its end """
    if proc.proc.poll() is None:
        proc.proc.kill()
        proc.proc.wait()


def throughput(mbps):
    """ Figures of the goodput in the intervals of a run """
    count = len(mbps)
    mean = sum(mbps) / count
    stddev = (sum((x - mean) ** 2 for x in mbps) / (count - 1)) ** 0.5
    half = T99 * stddev / count ** 0.5
    return [("throughput", "Mbit/s", mean),
            ("throughput_stddev", "Mbit/s", stddev),
            ("throughput_lo", "Mbit/s", mean - half),
            ("throughput_hi", "Mbit/s", mean + half)]


def _irq_numbers(ifname):
    """ From sysfs; a device that is not on a PCI bus has none there """
    dev = os.path.realpath(f"/sys/class/net/{ifname}/device")
    for path in (dev, os.path.dirname(dev)):
        try:
            return set(os.listdir(f"{path}/msi_irqs"))
        except OSError:
            pass
        try:
            with open(f"{path}/irq", encoding="ascii") as file:
                irq = file.read().strip()
            if irq != "0":
                return {irq}
        except OSError:
            pass
    return set()


def _irqs(ifname):
    """
    Interrupts of the device so far, or None when it has none.

    By number, else by name: the interface's, alone or before a "-", or the
    name of the device.
    """
    numbers = _irq_numbers(ifname)
    device = os.path.basename(os.path.realpath(
        f"/sys/class/net/{ifname}/device"))
    total = None
    with open("/proc/interrupts", encoding="ascii") as file:
        cpus = len(file.readline().split())
        for line in file:
            number, _, row = line.partition(":")
            row = row.split()
            number = number.strip()
            if numbers:
                match = number in numbers
            else:
                match = number.isdecimal() and any(
                    word in (ifname, device) or word.startswith(ifname + "-")
                    for word in "".join(row[-1:]).split(","))
            if match:
                total = (total or 0) + sum(int(x) for x in row[:cpus])
    return total
