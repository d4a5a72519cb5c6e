# SPDX-License-Identifier: GPL-2.0
"""Tests of the patches for mvneta, run by scripts/test-patches in the lab's guest.

usage: mvneta.py TEST    see tests/mvneta for which patch a test is of

Exit status 0 if it passes, 1 if it fails, 2 if it could not be made. A test fails
also when the model counts an error of the driver or mappings are left.
"""
# pylint: disable=too-many-lines
import contextlib
import ctypes
import glob
import importlib
import json
import os
import random
import re
import selectors
import signal
import socket
import struct
import subprocess
import sys
import time
import traceback

NICSIM = "/sys/kernel/debug/nicsim/port0/"
LIBC = ctypes.CDLL(None, use_errno=True)
ETH_TEST, ETH_XDP = 0x88B5, 0x88B6  # EtherTypes for experiments
RNG = random.Random(1)
TESTS = {}


def test(func):
    """Note a test"""
    TESTS[func.__name__] = func
    return func


def run(cmd):
    """Run a command line, return its status and what it printed"""
    res = subprocess.run(cmd, shell=True, text=True, check=False,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return res.returncode, res.stdout


def shell(cmd):
    """Run a command line that works, return what it printed"""
    code, out = run(cmd)
    assert not code, f"{cmd}: {out.strip()}"
    return out


def put(path, value):
    """Write to a file of sysfs or debugfs"""
    with open(path, "w", encoding="ascii") as file:
        file.write(str(value))


def get(path):
    """Read a file of sysfs or debugfs"""
    with open(path, encoding="ascii") as file:
        return file.read()


def stats(*names):
    """Counts of the model"""
    counts = dict(line.split() for line in get(NICSIM + "stats").splitlines())
    return [int(counts[name]) for name in names]


def live():
    """Live DMA mappings of both ports"""
    return stats("dma_live")[0]


def dropped():
    """Packets the driver dropped"""
    return int(get("/sys/class/net/eth0/statistics/tx_dropped"))


def failing(k, send):
    """What send() returns, with the k-th mapping for transmission failing"""
    put(NICSIM + "dma_map_fail", k)
    res = send()
    time.sleep(0.01)
    put(NICSIM + "dma_map_fail", 0)
    return res


def in_peer(func):
    """Call func in the peer's network namespace"""
    with open("/proc/self/ns/net", "rb") as own, open("/run/netns/peer", "rb") as peer:
        assert not LIBC.setns(peer.fileno(), 0x40000000)
        try:
            return func()
        finally:
            assert not LIBC.setns(own.fileno(), 0x40000000)


SOCKETS = []


def packet(dev, proto):
    """A packet socket that takes and gives whole frames"""
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(proto))
    sock.setsockopt(socket.SOL_SOCKET, 33, 1 << 25)  # SO_RCVBUFFORCE
    sock.setsockopt(socket.SOL_SOCKET, 32, 1 << 25)  # SO_SNDBUFFORCE
    sock.bind((dev, proto))
    SOCKETS.append(sock)
    return sock


def received(peer, wait=0.2):
    """All that arrives, until nothing does for a time"""
    got = []
    peer.settimeout(wait)
    try:
        while True:
            got.append(peer.recv(65536))
    except (TimeoutError, BlockingIOError):  # the latter with a wait of 0
        return got


def carrier():
    """Wait for the link"""
    for _ in range(100):
        if get("/sys/class/net/eth0/carrier").strip() == "1":
            return
        time.sleep(0.1)
    raise AssertionError("no carrier")


def ping(dest="192.0.2.2"):
    """The way there and back is open"""
    shell(f"ping -c 3 -i 0.05 -W 1 {dest}")


def both(what):
    """Set something of both ends of the wire"""
    shell(f"ip link set eth0 {what} && ip -n peer link set eth0 {what}")
    for sock in SOCKETS:
        sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)  # the network was down


def down_up():
    """Set both ends of the wire down and up"""
    both("down")
    both("up")
    carrier()


def suspend():
    """Suspend to memory and resume, which both ends do"""
    shell("rtcwake -m mem -s 5")
    carrier()


def set_mtu(mtu):
    """Set the MTU of both ends, which starts them anew, one after the other"""
    both(f"mtu {mtu}")
    carrier()
    ping()


def set_ring(size):
    """Set the size of both rings"""
    shell(f"ethtool -G eth0 rx {size} tx {size}")
    carrier()
    ping()  # addresses have to be resolved again


def set_speed(mbps):
    """Set the speed of the wire"""
    put(NICSIM + "speed", mbps)
    time.sleep(5)  # the link goes down and comes back
    carrier()
    assert int(get("/sys/class/net/eth0/speed")) == mbps, "another speed"
    ping()


@contextlib.contextmanager
def server():
    """The peer's end of streams, and its port"""
    with subprocess.Popen(["ip", "netns", "exec", "peer", "net/txq/txq_server", "--control"],
                          stdout=subprocess.PIPE, text=True) as proc:
        port = proc.stdout.readline().split()[1]
        with socket.create_connection(("192.0.2.2", port)):
            yield port


def stream(args="--time 0.3 --warmup 0.2", dest="192.0.2.2"):
    """Goodput of a TCP stream in Mbit/s, what arrives is as sent"""
    with server() as port:
        code, out = run(f"timeout 60 net/txq/txq_stream {args} {dest} {port}")
    assert not code, f"stream {args}: {out.strip()}"
    mbps = json.loads(out.splitlines()[-1])["mbps"]
    return sum(mbps) / len(mbps)


def line_rate(mbps, payload=1448):
    """That is all that frames of 1500 bytes with this payload carry at 1 Gbit/s"""
    want = 1000 * payload / 1538
    assert abs(mbps / want - 1) <= 0.002, f"{mbps:.1f} Mbit/s, not {want:.1f}"


class Link:
    """Sockets at both ends, and the frames that are to arrive"""

    def __init__(self):
        self.src = bytes.fromhex(get("/sys/class/net/eth0/address").strip().replace(":", ""))
        self.dst = bytes.fromhex(shell("ip -n peer -br link show eth0").split()[2].replace(":", ""))
        shell("ip netns exec peer ethtool -K eth0 gro off")
        both("down")
        time.sleep(3)
        self.live = live()
        both("up")
        carrier()
        self.sock = packet("eth0", 0)
        self.peer = in_peer(lambda: packet("eth0", ETH_TEST))
        self.want = []
        self.seq = 0
        ping()

    def frame(self, size=200, proto=ETH_TEST):
        """A frame like no other"""
        self.seq += 1
        head = self.dst + self.src + struct.pack("!HI", proto, self.seq)
        return head + RNG.randbytes(size - len(head))

    def send(self, num, size=200, kept=True):
        """Send linear frames, one at a time"""
        for _ in range(num):
            frame = self.frame(size)
            self.sock.send(frame)
            if kept:
                self.want.append(frame)

    def check(self, peer=None, want=None):
        """What was sent arrives, and nothing else does"""
        peer, want = peer or self.peer, self.want if want is None else want
        got = received(peer)
        if got != want:
            same = next((i for i, (a, b) in enumerate(zip(got, want)) if a != b),
                        min(len(got), len(want)))
            stray = sum(f not in set(want) for f in got)
            raise AssertionError(f"{len(got)} of {len(want)} frames, the first {same} as sent, "
                                 f"{stray} that nobody sent")
        if want is self.want:
            self.want.clear()

    def after(self):
        """The rings are as they should be: they can go round, and nothing leaks"""
        for _ in range(22):
            self.send(50, 60 + self.seq % 1000)
            self.check()
        both("down")
        time.sleep(3)  # page pools look once a second whether all came back
        left = live() - self.live
        assert not left, f"{left} DMA mappings are left"
        both("up")
        carrier()
        errors = get(NICSIM + "errors")
        assert not errors, errors

    def drops_one(self, k, send, kind):
        """send() with its k-th mapping failing is a counted drop; others are sent"""
        before = dropped()
        failing(k, send)
        drops = dropped() - before
        assert drops == 1, f"{kind}, mapping {k}: {drops} drops"
        self.send(20)
        try:
            self.check()
        except AssertionError as exc:
            raise AssertionError(f"{kind}, after mapping {k} failed: {exc}") from None


@test
def map_linear(link):
    """A linear skb that cannot be mapped is dropped"""
    link.drops_one(1, lambda: link.send(1, kept=False), "linear")


@test
def map_wrap(link):
    """The same at each place of the ring"""
    for _ in range(1100):
        before = dropped()
        put(NICSIM + "dma_map_fail", 1)
        link.send(1, kept=False)
        assert dropped() == before + 1, "no drop"
        link.send(1)
    link.check()


def udp_peer():
    """The peer's end for datagrams"""
    def make():
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sock.setsockopt(socket.SOL_SOCKET, 33, 1 << 25)
        sock.bind(("192.0.2.2", 9000))
        return sock
    return in_peer(make)


def udp_socket():
    """Our end"""
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.connect(("192.0.2.2", 9000))
    return sock


def spliced(frags):
    """A function that sends a datagram of pages that are fragments each"""
    sock = udp_socket()

    def send():
        out, into = os.pipe2(os.O_DIRECT)  # each write a page of its own
        data = [RNG.randbytes(64 + i) for i in range(frags)]
        for page in data:
            os.write(into, page)
        os.splice(out, sock.fileno(), sum(map(len, data)))  # more would cork
        os.close(out)
        os.close(into)
        return b"".join(data)
    return send


@test
def map_frags(link):
    """An skb of 16 fragments, each mapping"""
    udp, send = udp_peer(), spliced(16)
    for k in range(1, 18):
        link.drops_one(k, send, "fragments")
        link.check(udp, [send() for _ in range(3)])


def csum(data):
    """Internet checksum, 0 if data has a right one"""
    total = sum(struct.unpack(f"!{(len(data) + 1) // 2}H", data + b"\0" * (len(data) & 1)))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


def ipv4(proto, size, dest):
    """An IPv4 header before size bytes, and the pseudo header"""
    head = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + size, 1, 0, 64, proto, 0,
                       socket.inet_aton("192.0.2.1"), socket.inet_aton(dest))
    return (head[:10] + struct.pack("!H", csum(head)) + head[12:],
            head[12:20] + struct.pack("!BBH", 0, proto, size))


def ipv6(proto, size, dest):
    """The same for IPv6"""
    addrs = socket.inet_pton(socket.AF_INET6, "2001:db8::1") + \
        socket.inet_pton(socket.AF_INET6, dest)
    return (struct.pack("!IHBB", 6 << 28, size, proto, 64) + addrs,
            addrs + struct.pack("!II", size, proto))


def vnet_socket():
    """A packet socket for what is to be cut"""
    sock = packet("eth0", 0)
    sock.setsockopt(263, 15, 1)  # SOL_PACKET, PACKET_VNET_HDR
    return sock


def tso(link, sock, segs, mss=1448):
    """Send a TCP segment that has to be cut; return its payload"""
    payload = RNG.randbytes(segs * mss)
    head, pseudo = ipv4(6, 20 + len(payload), "192.0.2.99")
    tcp = struct.pack("!HHIIBBHHH", 9, 9, 0, 0, 0x50, 0x10, 1000, csum(pseudo) ^ 0xFFFF, 0)
    # NEEDS_CSUM, TCPV4, header length, MSS, checksum start and offset
    vnet = struct.pack("<BBHHHH", 1, 1, 54, mss, 34, 16)
    sock.send(vnet + link.dst + link.src + b"\x08\x00" + head + tcp + payload)
    return payload


def tso6_send(link, sock, segs, mss):
    """The same over IPv6"""
    payload = RNG.randbytes(segs * mss)
    head, pseudo = ipv6(6, 20 + len(payload), "2001:db8::99")
    tcp = struct.pack("!HHIIBBHHH", 9, 9, 0, 0, 0x50, 0x10, 1000, csum(pseudo) ^ 0xFFFF, 0)
    vnet = struct.pack("<BBHHHH", 1, 4, 74, mss, 54, 16)
    sock.send(vnet + link.dst + link.src + b"\x86\xdd" + head + tcp + payload)
    return payload


def tso_check(peer, payloads, mss=1448, ip6=False):
    """The segments of these arrive, with right checksums"""
    got, size = [], 40 if ip6 else 20
    for frame in received(peer):
        tcp = frame[14 + size:]
        if frame[20 if ip6 else 23] != 6:
            continue
        if ip6:
            pseudo = frame[22:54] + struct.pack("!II", len(tcp), 6)
            assert frame[18:20] == struct.pack("!H", len(tcp)), "IP length"
        else:
            pseudo = frame[26:34] + struct.pack("!BBH", 0, 6, len(tcp))
            assert not csum(frame[14:34]), "IP checksum"
        assert not csum(pseudo + tcp), "TCP checksum"
        got.append((struct.unpack("!I", tcp[4:8])[0], tcp[20:]))
    want = [(i, p[i:i + mss]) for p in payloads for i in range(0, len(p), mss)]
    assert got == want, f"{len(got)} of {len(want)} segments as sent"


@test
def map_tso(link):
    """A TSO packet, each mapping"""
    peer = in_peer(lambda: packet("eth0", 0x0800))
    sock = vnet_socket()
    tso_check(peer, [tso(link, sock, 10)])
    for k in range(1, 11):
        link.drops_one(k, lambda: tso(link, sock, 10), "TSO")
        tso_check(peer, [tso(link, sock, 10) for _ in range(3)])


def bpf(cmd, attr):
    """bpf(2)"""
    buf = ctypes.create_string_buffer(attr, 128)
    res = LIBC.syscall(321, cmd, buf, 128)
    if res < 0:
        raise OSError(ctypes.get_errno(), f"bpf command {cmd}")
    return res


def redirect(dev, dest):
    """Attach an XDP program, frags allowed, that redirects all, until exit"""
    # r1 = dest; r2 = 0; redirect; exit: code, dst | src << 4, offset, immediate each
    insns = [(0xB7, 1, 0, socket.if_nametoindex(dest)), (0xB7, 2, 0, 0), (0x85, 0, 0, 23),
             (0x95, 0, 0, 0)]
    code = b"".join(struct.pack("<BBhi", *i) for i in insns)
    text, lic = ctypes.create_string_buffer(code), ctypes.create_string_buffer(b"GPL")
    # PROG_LOAD, type XDP, BPF_F_XDP_HAS_FRAGS
    prog = bpf(5, struct.pack("<IIQQIIQII", 6, len(insns), ctypes.addressof(text),
                              ctypes.addressof(lic), 0, 0, 0, 0, 1 << 5))
    # LINK_CREATE, BPF_XDP, XDP_FLAGS_DRV_MODE
    bpf(28, struct.pack("<IIII", prog, socket.if_nametoindex(dev), 37, 4))


def udp_frame(link, size):
    """A frame with a datagram for udp_peer()"""
    udp = struct.pack("!HHHH", 9, 9000, size - 34, 0) + RNG.randbytes(size - 42)
    return link.dst + link.src + b"\x08\x00" + ipv4(17, len(udp), "192.0.2.2")[0] + udp


def redirector(link, mtu, udp=False):
    """A function that has frames redirected to eth0 (ndo_xdp_xmit)"""
    shell(f"""ip link add v0 mtu {mtu} type veth peer name v1 mtu {mtu}
              sysctl -q net.ipv6.conf.v0.disable_ipv6=1 net.ipv6.conf.v1.disable_ipv6=1
              ip link set v0 up; ip link set v1 up""")
    redirect("v1", "eth0")
    sock = packet("v0", 0)

    def send(num, size):
        frames = [udp_frame(link, size) if udp else link.frame(size, ETH_XDP) for _ in range(num)]
        for frame in frames:
            sock.send(frame)
        return [f[42:] for f in frames] if udp else frames
    return send


def xdp_errors():
    """Frames that ndo_xdp_xmit refused"""
    return int(re.search(r"tx_xdp_xmit_errors: (\d+)", shell("ethtool -S eth0"))[1])


@test
def xdp_csum(link):
    """Frames from ndo_xdp_xmit ask for no checksum, which the model counts"""
    send = redirector(link, 1500)
    peer = in_peer(lambda: packet("eth0", ETH_XDP))
    link.check(peer, send(20, 1000))


@test
def map_xdp(link):
    """A frame from ndo_xdp_xmit with fragments, each mapping"""
    set_mtu(9000)
    send, peer = redirector(link, 9000, udp=True), udp_peer()
    size, k = 9000, 0
    link.check(peer, send(1, size))
    while True:
        k += 1
        before = xdp_errors()
        want = failing(k, lambda: send(1, size))
        if xdp_errors() == before:
            break  # it has less than k mappings
        link.send(20)
        link.check()
        link.check(peer, send(3, size))
    assert k > 3, f"the frame had {k - 1} mappings, too few"
    link.check(peer, want)


def batch(segs):
    """A function that sends one GSO datagram, which the stack cuts: a batch"""
    put("/sys/class/net/eth0/queues/tx-0/byte_queue_limits/limit_min", 1000000)
    sock = udp_socket()
    sock.setsockopt(17, 103, 1000)  # UDP_SEGMENT

    def send():
        data = [RNG.randbytes(1000) for _ in range(segs)]
        sock.send(b"".join(data))
        return data
    return send


def last_dropped(link, udp):
    """Send a batch whose last mapping fails; return the packets before it"""
    send, last = batch(8), 0
    while True:
        before = dropped()
        failing(last + 1, send)
        received(udp, 0.05)
        if dropped() == before:
            break  # it has no more mappings
        last += 1
    link.send(5)
    link.check()
    before = dropped()
    data = failing(last, send)
    time.sleep(0.1)
    assert dropped() == before + 1, "nothing was dropped"
    return data[:-1]


@test
def doorbell(link):
    """The last packet of a batch is dropped: the others are sent"""
    udp = udp_peer()
    link.check(udp, last_dropped(link, udp))


@test
def doorbell_down(link):
    """The same, and the interface goes down and up: nothing is sent by mistake"""
    udp = udp_peer()
    last_dropped(link, udp)
    udp.close()
    down_up()
    link.send(5)
    link.check()


def coalescing():
    """What ethtool reports of TX: tx-frames, and tx-usecs if the driver has that"""
    return {k: int(v) for k, v in
            re.findall(r"^(tx-(?:frames|usecs)):\s+(\d+)", shell("ethtool -c eth0"), re.M)}


def coalesce(frames, usecs=None):
    """Set that"""
    more = "" if usecs is None else f" tx-usecs {usecs}"
    shell(f"ethtool -C eth0 tx-frames {frames}{more}")


@test
def tx_frames(link):
    """What ethtool takes as tx-frames does not stall a queue"""
    was = now = coalescing()
    for more in {}, {"tx-usecs": 0}, {"tx-usecs": 500}:
        for num in 1, 0, 2, 16, 300, 0x3FFF, 0x4000, 0x10000, 0xFFFFFFFF:
            new = {"tx-frames": num} | more
            text = " ".join(f"{k} {v}" for k, v in new.items())
            code, out = run("ethtool -C eth0 " + text)
            if not code:
                now = now | new
                down_up()
            elif not more:
                assert num > 1 and "tx-frames" in out, out
            assert coalescing() == now, f"after {text}: {coalescing()}, not {now}"
            link.send(5)
            try:
                link.check()
            except AssertionError as exc:
                raise AssertionError(f"{text} is {'refused' if code else 'accepted'}; "
                                     f"then {exc}") from None
    shell("ethtool -C eth0 " + " ".join(f"{k} {v}" for k, v in was.items()))


def rtt():
    """Round-trip time in seconds, infinite without an answer"""
    match = re.search(r"time=([\d.]+) ms", run("ping -c 1 -W 30 192.0.2.2")[1])
    return float(match[1]) / 1000 if match else float("inf")


@test
def rx_coalesce(_link):
    """What ethtool takes as rx-usecs and rx-frames is what the answers wait for"""
    shell("ethtool -C eth0 rx-frames 100")
    # at clock rates of 166 to 250 MHz these overflow to next to nothing
    for num in [1000, 1000000] + [(1 << 32) // mhz + 1 for mhz in (166, 200, 250)] + [0xFFFFFFFF]:
        code, out = run(f"ethtool -C eth0 rx-usecs {num}")
        if code:
            assert num > 1000000 and "rx-usecs" in out, out
            continue
        took = rtt()
        assert took > min(num / 1.1e6, 15), f"rx-usecs {num} is accepted; answer after {took} s"
    shell("ethtool -C eth0 rx-usecs 1000")
    for num in 100, 0x3FFF, 0x10000, 0x20000:
        code, out = run(f"ethtool -C eth0 rx-frames {num}")
        if code:
            assert num > 0x3FFF and "rx-frames" in out, out
            continue
        took = rtt()
        assert took > 0.001, f"rx-frames {num} is accepted; answer after {took} s"
    shell("ethtool -C eth0 rx-frames 32 rx-usecs 100")


@test
def csum_mtu(_link):
    """No checksum is left to hardware that cannot do it at this MTU"""
    def offered():
        return (all_ | {"tx-tcp6-segmentation"}) & set(
            re.findall(r"^\s*(\S+): on", shell("ethtool -k eth0"), re.M))
    all_ = {"tx-checksum-ipv4", "tx-checksum-ipv6", "tx-tcp-segmentation"}
    assert offered() >= all_, offered()
    set_mtu(2400)
    # the model counts an error if it is asked for a checksum
    for family, dest in ((socket.AF_INET, "192.0.2.2"), (socket.AF_INET6, "2001:db8::2")):
        ping(dest)
        socket.socket(family, socket.SOCK_DGRAM).sendto(bytes(2200), (dest, 9))
    time.sleep(0.01)
    assert not offered(), f"with an MTU of 2400 still on: {offered()}"
    set_mtu(1500)
    assert offered() >= all_, offered()


def subset(got, sent):
    """What arrived was sent, once each and in order; how many are missing"""
    i = 0
    for frame in sent:
        if i < len(got) and got[i] == frame:
            i += 1
    assert i == len(got), f"{len(got) - i} of {len(got)} XDP frames are not as sent"
    return len(sent) - i


@test
def xdp_ring(link):
    """ndo_xdp_xmit fills the ring, the stack sends: nothing is overwritten"""
    udp, frags, send = udp_peer(), spliced(16), redirector(link, 1500)
    peer = in_peer(lambda: packet("eth0", ETH_XDP))
    for _ in range(3):
        sent = send(1500, 1514)
        want = [frags() for _ in range(20)]
        link.send(100, 1000)
        lost = subset(received(peer), sent)
        assert lost > 100, f"only {lost} frames lost, the ring was not full"
        link.check(udp, want)
        link.check()


@test
def xdp_starve(link):
    """ndo_xdp_xmit takes all it gets for 0.3 s, the stack still sends"""
    shell("tc qdisc replace dev eth0 root pfifo limit 1000")
    send = redirector(link, 1500)
    peer = in_peer(lambda: packet("eth0", ETH_XDP))
    sent, got = [], 0
    for i in range(300):
        sent += send(900 if not i else 120, 1514)
        if i < 250:
            link.send(1, 1514, kept=False)
        time.sleep(0.001)
        got += len(received(link.peer, 0))
    # it may have to wait for half of the ring each time, some 5 ms
    assert got >= 50, f"{got} of 250 frames of the stack got through"
    assert subset(received(peer), sent) > 1000
    got += len(received(link.peer, 1))
    assert got == 250, f"{250 - got} frames of the stack are lost"


def timeouts():
    """TX timeouts reported so far"""
    return sum(int(get(path)) for path in glob.glob("/sys/class/net/eth0/queues/tx-*/tx_timeout"))


def stalled(link, knob):
    """Let a fault of the device make transmission stall; how many timeouts it takes"""
    put(NICSIM + knob, 1)
    link.send(300, 1000, kept=False)
    time.sleep(60)  # the watchdog waits for 5 s, what it starts for what hangs, 10 s each
    assert get(NICSIM + knob).strip() == "0", "the fault is still there"
    carrier()
    received(link.peer)
    link.send(100, 1000)
    link.check()
    ping()
    return timeouts()


@test
def timeout_irq(link):
    """A lost interrupt ends in a working queue, by a timeout or a timer before that"""
    stalled(link, "lose_irq")


@test
def timeout_hang(link):
    """A hang of the transmit engine ends in a reported timeout and a working queue"""
    assert stalled(link, "tx_hang"), "no timeout was reported"


@test
def resume(link):
    """After a suspend receiving goes on, for longer than the ring is"""
    back = packet("eth0", ETH_TEST)
    sock = in_peer(lambda: packet("eth0", 0))

    def receive(rounds):
        for _ in range(rounds):
            frames = [link.frame(60 + i * 29) for i in range(50)]
            for frame in frames:
                sock.send(frame)
            link.check(back, frames)
    link.src, link.dst = link.dst, link.src
    receive(3)  # so that it is not where it starts
    suspend()
    receive(45)
    link.src, link.dst = link.dst, link.src


def classes(num, args="hw 0"):
    """As many traffic classes as that by mqprio, each with its share of the 8 queues"""
    prios = " ".join(str(min(i, num - 1)) for i in range(16))
    queues = " ".join(f"{8 // num}@{8 // num * i}" for i in range(num))
    shell(f"tc qdisc add dev eth0 root mqprio num_tc {num} map {prios} queues {queues} {args}")


def no_classes():
    """The default qdisc again"""
    shell("tc qdisc del dev eth0 root")


@test
def mqprio_off(_link):
    """The limits of mqprio, and its classes, are gone with it"""
    def class_of(queue):
        return get(f"/sys/class/net/eth0/queues/tx-{queue}/traffic_class").strip()
    line_rate(stream())
    for _ in range(2):
        classes(2, "hw 1 mode channel shaper bw_rlimit max_rate 100Mbit 100Mbit")
        limited = stream()  # it may be less, as the port's bucket holds but a frame
        assert class_of(7) == "1" and 40 < limited < 100, f"{limited:.1f} Mbit/s with a limit"
        no_classes()
        free = stream()
        assert free > 2 * limited, f"{free:.1f} Mbit/s without the limit"
        line_rate(free)
        assert class_of(7) == "0", "the class is still there"


def interrupts():
    """Interrupts a frame of a stream, and its goodput"""
    before = stats("irqs", "wire_sent")
    mbps = stream()
    irqs, frames = (b - a for a, b in zip(before, stats("irqs", "wire_sent")))
    return irqs / frames, mbps


@test
def tx_coalesce(_link):
    """By default a stream has few interrupts and all of its throughput"""
    few, mbps = interrupts()
    coalesce(1, 0 if "tx-usecs" in coalescing() else None)
    each, most = interrupts()
    print(f"{few:.3f} interrupts a frame, {mbps:.1f} Mbit/s; {each:.3f}, {most:.1f} at once")
    assert few <= each / 8, f"{few:.3f} interrupts a frame by default, {each:.3f} at once"
    assert abs(mbps / most - 1) <= 0.002, f"{mbps:.1f} Mbit/s by default, {most:.1f} at once"


def datagrams(sndbuf):
    """Datagrams of 1400 bytes that go through a socket with such a buffer, in 0.1 s"""
    sock, peer = udp_socket(), udp_peer()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, sndbuf)
    sock.settimeout(2)
    num, end = 0, time.monotonic() + 0.1
    while time.monotonic() < end:
        try:
            sock.send(bytes(1400))
        except TimeoutError:
            raise AssertionError(f"UDP with SO_SNDBUF {sndbuf} stalls") from None
        num += 1
    peer.close()
    return num


@test
def tx_coalesce_small(_link):
    """Sockets that can send only when something has been sent do not wait for more"""
    usecs = coalescing().get("tx-usecs")
    got = {}
    for frames in 16, 1:
        coalesce(frames, usecs)
        for num in 2304, 4608:  # the kernel takes twice that; there is no less
            got["UDP", num, frames] = datagrams(num)
        for num in 4096, 8192, 16384:
            got["TCP", num, frames] = stream(f"--time 0.2 --warmup 0.1 --sndbuf {num}")
    print(got)
    for kind, num, frames in got:
        slow, most = got[kind, num, 16], got[kind, num, 1]
        assert slow >= most * (0.98 if kind == "TCP" else 0.9), \
            f"{kind}, SO_SNDBUF {num}: {slow:.1f} with 16 frames an interrupt, {most:.1f} with 1"


def in_flight():
    """Bytes that the first queue has not reclaimed"""
    return int(get("/sys/class/net/eth0/queues/tx-0/byte_queue_limits/inflight"))


@test
def tx_backstop(link):
    """A lost interrupt is made up for by the timer of the transmitter"""
    sock = in_peer(lambda: packet("eth0", 0))
    for usecs in 500, 5000:
        if "tx-usecs" in coalescing():
            coalesce(64, usecs)
        for i in range(25):
            put(NICSIM + "lose_irq", 1)
            for _ in range(i % 5):
                sock.send(link.src + link.dst + b"\x88\xb6" + bytes(200))
            link.send(i, 1000)
            time.sleep(usecs / 1e6)
            took = rtt()
            assert get(NICSIM + "lose_irq").strip() == "0", "no interrupt was lost"
            assert took < 0.02, f"answer after {took} s"
            link.check()
    # what waits in the ring for a link is reclaimed when it has been sent after all
    for num in 1, 5, 30:
        put(NICSIM + "link", 0)
        link.send(num, 1000, kept=False)
        assert in_flight(), "nothing waits for the link"
        time.sleep(3)
        put(NICSIM + "link", 1)
        carrier()
        time.sleep(0.02)
        assert not in_flight(), f"{in_flight()} bytes are not reclaimed"
        received(link.peer)
    assert not timeouts(), "a timeout was reported"


def burst():
    """Interrupts of 200 frames that are sent at once"""
    sock, peer = udp_socket(), udp_peer()
    sock.setsockopt(socket.SOL_SOCKET, 32, 1 << 25)
    before = stats("irqs")[0]
    for _ in range(200):
        sock.send(bytes(1400))
    time.sleep(0.1)
    assert len(received(peer, 0)) == 200
    peer.close()
    return stats("irqs")[0] - before


@test
def tx_coalesce_set(link):
    """What ethtool takes is kept and in force, whatever happens; the rest is refused"""
    was = coalescing()
    assert "tx-usecs" in was, "no tx-usecs"
    for text, why in (("tx-frames 16 tx-usecs 0", "tx-usecs"), ("tx-frames 1025", "tx-frames"),
                      ("tx-usecs 2000000", "tx-usecs")):
        code, out = run("ethtool -C eth0 " + text)
        assert code and why in out, f"{text}: {out}"
        assert coalescing() == was, f"after {text}: {coalescing()}"
    for frames, usecs, low, high in (1000, 5000, 1, 40), (1, 0, 150, 220):
        coalesce(frames, usecs)
        for what, arg in ((None, None), (both, "mtu 4000"), (both, "mtu 1500"), (set_ring, 256),
                          (set_ring, 512), (suspend, None), (down_up, None)):
            if what:
                what(*[arg] if arg else [])
                carrier()
                ping()
            got = coalescing()
            assert got == {"tx-frames": frames, "tx-usecs": usecs}, f"{got} after {what} {arg}"
            num = burst()
            assert low <= num <= high, f"{num} interrupts after {what} {arg} with {got}"
            link.send(20)
            link.check()


@test
def tx_coalesce_stress(_link):
    """Changes under load, both ways, leave nothing behind"""
    change = [
        lambda: coalesce(RNG.choice((0, 1)), RNG.choice((0, 10, 100))),
        lambda: coalesce(RNG.choice((2, 16, 64, 1000)), RNG.choice((10, 100, 500, 5000))),
        lambda: shell(f"ip link set eth0 mtu {RNG.choice((1500, 4000, 9000))}"),
        lambda: shell(f"ethtool -G eth0 rx {RNG.choice((64, 256, 512))} "
                      f"tx {RNG.choice((256, 512, 1024))}"),
        lambda: shell("ip link set eth0 down && ip link set eth0 up"),
        # without the latter the former is refused
        lambda: run(f"ethtool -K eth0 tso {RNG.choice(('off', 'on'))}"),
        lambda: run(f"ethtool -K eth0 sg {RNG.choice(('off', 'on'))}"),
    ]
    for _ in range(3):
        with server() as port:
            cmd = f"timeout 60 net/txq/txq_stream --warmup 0 --time 0.6 192.0.2.2 {port}"
            procs = [subprocess.Popen((cmd + more).split(), stdout=subprocess.PIPE, text=True,
                                      stderr=subprocess.STDOUT) for more in ("", " --reverse")]
            for func in RNG.sample(change * 2, 14):
                time.sleep(RNG.random() * 0.08)
                func()
            out = "".join(proc.communicate()[0] for proc in procs)
        print(out)
        # a stream that has to wait too long ends early
        assert "wrong" not in out, out
    coalesce(64, 500)
    shell("ip link set eth0 mtu 1500; ethtool -G eth0 rx 512 tx 1024; ethtool -K eth0 sg on tso on")
    carrier()
    ping()
    line_rate(stream())


def tcp_pair(prio):
    """A connection to the peer at a priority, and something to send"""
    with in_peer(lambda: socket.create_server(("192.0.2.2", 0))) as listener:
        sock = socket.create_connection(listener.getsockname())
        peer = listener.accept()[0]
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, prio)
    return sock, peer, bytes(65536)


def udp_pair(prio, size):
    """The same for datagrams"""
    def make():
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sock.setsockopt(socket.SOL_SOCKET, 33, 1 << 25)
        sock.bind(("192.0.2.2", 0))
        return sock
    sock, peer = socket.socket(socket.AF_INET, socket.SOCK_DGRAM), in_peer(make)
    sock.connect(peer.getsockname())
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, prio)
    return sock, peer, bytes(size)


def send_all_the_time(sock, data):
    """In a process of its own; returns its ID"""
    pid = os.fork()
    if not pid:
        while True:
            sock.send(data)
    return pid


def compete(pairs, more=0):
    """Mbit/s that each gets when all send; with so many bytes more for a message"""
    got, buf = [0] * len(pairs), bytearray(1 << 20)
    pids = [send_all_the_time(sock, data) for sock, _, data in pairs]
    with selectors.DefaultSelector() as sel:
        for i, (_, peer, _) in enumerate(pairs):
            sel.register(peer, selectors.EVENT_READ, i)
        start = end = None
        begin = time.monotonic()
        while not start or end < start + 0.2:
            for key, _ in sel.select(0.1):
                got[key.data] += key.fileobj.recv_into(buf) + more
            end = time.monotonic()
            if not start and end >= begin + 0.1:  # they have found their speed
                start, got = end, [0] * len(pairs)
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    for sock, peer, _ in pairs:
        sock.close()
        peer.close()
    time.sleep(1)  # what is still in the queues
    got = [num * 8 / (end - start) / 1e6 for num in got]
    print([round(num, 1) for num in got])
    return got


def fairness(got):
    """Jain's index"""
    return sum(got) ** 2 / len(got) / sum(num * num for num in got)


def fair():
    """Queues get the same, of all that one gets alone"""
    classes(8)
    alone = compete([tcp_pair(0)])[0]
    for num in 4, 8:
        got = compete([tcp_pair(i) for i in range(num)])
        assert fairness(got) >= 0.99, f"TCP on {num} queues: {got}"
        assert abs(sum(got) / alone - 1) <= 0.005, f"{sum(got)} Mbit/s of {num}, {alone} of one"
    # slow enough for the CPU to fill the queues with small frames
    set_speed(100)
    for path in glob.glob("/sys/class/net/eth0/queues/tx-*/byte_queue_limits/limit_min"):
        put(path, 20000)  # more than a turn: a queue is never empty before its turn is over
    for mtu, sizes in (1500, (200, 1400, 200, 1400)), (4000, (200, 1400, 3900, 200, 3900)):
        set_mtu(mtu)
        got = compete([udp_pair(i, size) for i, size in enumerate(sizes)], 42)
        assert max(got) <= 1.05 * min(got), f"UDP of {sizes} bytes, MTU {mtu}: {got}"
    set_mtu(1500)
    no_classes()


def strict():
    """With the offload of mqprio the higher queue goes first"""
    set_speed(100)
    classes(2, "hw 1")
    low, high = compete([udp_pair(0, 1400), udp_pair(1, 1400)], 42)
    assert high > 20 * low, f"{low} Mbit/s on the lower, {high} on the higher queue"
    no_classes()
    set_speed(1000)


@test
def fair_queues(_link):
    """Queues share the link equally; not the classes of mqprio's offload"""
    fair()
    strict()


@test
def fair_queues_fixed(_link):
    """The same where the port starts with priorities"""
    fair()
    strict()


@test
def fair_queues_wrr(_link):
    """The same where it starts without; there what is new is that classes differ"""
    fair()
    strict()


def bursts(args="", dest="192.0.2.2"):
    """Frames and packets an skb in a stream, and its goodput"""
    names = "tx_skbs", "tx_packets", "wire_sent"
    before = stats(*names)
    mbps = stream("--time 0.2 --warmup 0.1 " + args, dest)
    skbs, packets, frames = (b - a for a, b in zip(before, stats(*names)))
    print(f"{frames / skbs:.2f} frames, {packets / skbs:.2f} packets an skb, {mbps:.1f} Mbit/s")
    return frames / skbs, packets / skbs, mbps


@test
def tso6(link):
    """Segments of IPv6 are cut by the driver, and rightly"""
    assert "tx-tcp6-segmentation: on" in shell("ethtool -k eth0"), "it is not on"
    for more in "", "ip link set eth0 gso_max_size 65536":
        shell(more)
        frames, packets, mbps = bursts(dest="2001:db8::2")
        assert frames > (20 if more else 1.5) and packets < 1.1, \
            f"{frames} frames and {packets} packets an skb"
        line_rate(mbps, 1428)
    peer, sock = in_peer(lambda: packet("eth0", 0x86DD)), vnet_socket()
    for segs, mss in (10, 1428), (40, 1428), (3, 536), (99, 100):
        tso_check(peer, [tso6_send(link, sock, segs, mss) for _ in range(3)], mss, True)


@test
def gso_default(_link):
    """Small bursts by default, but the user's and those of small buffers"""
    frames = bursts()[0]
    assert 1 < frames <= 3, f"{frames} frames an skb"
    frames = bursts("--sndbuf 16384")[0]
    assert frames > 3, f"{frames} frames an skb with a small buffer"
    shell("ip link set eth0 gso_max_size 65536")
    frames = bursts()[0]
    assert frames > 20, f"{frames} frames an skb when the user wants that"


class Netdev:
    """What the kernel tells about queues"""

    def __init__(self):
        sys.path.append("net/txq")
        self.lib = importlib.import_module("lib.py")
        self.family = self.lib.NetdevFamily()
        self.ifindex = socket.if_nametoindex("eth0")

    def dump(self, name, **args):
        """All of a kind, of eth0"""
        try:
            return getattr(self.family, name)({"ifindex": self.ifindex} | args, dump=True)
        except self.lib.NlError as exc:
            raise AssertionError(f"{name}: {exc}") from None

    def stats(self, kind):
        """Statistics of the queues"""
        got = {q["queue-id"]: q for q in self.dump("qstats_get", scope=["queue"])
               if q["queue-type"] == kind}
        return [got[i] for i in sorted(got)]


@test
def napi_link(link):
    """Queues tell their NAPI instance, and it its interrupt, whatever happens"""
    netdev, napis = Netdev(), set()
    for what in None, down_up, suspend, lambda: stalled(link, "tx_hang"), lambda: set_mtu(4000):
        if what:
            what()
        napi, = netdev.dump("napi_get")
        napis.add(napi["id"])
        queues = netdev.dump("queue_get")
        assert sorted(q["type"] for q in queues) == ["rx"] * 8 + ["tx"] * 8, queues
        assert all(q.get("napi-id") == napi["id"] for q in queues), queues
        line, = re.findall(rf"^ *{napi.get('irq')}: .*", get("/proc/interrupts"), re.M) or [""]
        assert re.search("eth|ethernet|mvneta", line), f"{napi}: {line}"
    set_mtu(1500)
    assert len(napis) == 1, napis


@test
def queue_stats(_link):
    """Counts of queues are of what they carry, and add up to the device's"""
    netdev = Netdev()

    def sums():
        for name in "rx_packets", "rx_bytes", "tx_packets", "tx_bytes":
            want = int(get("/sys/class/net/eth0/statistics/" + name))
            got = [q[name.replace("_", "-")] for q in netdev.stats(name[:2])]
            assert sum(got) == want, f"{name}: {got}, the device has {want}"

    def carried(names, prio, num, size):
        before = netdev.stats("tx")
        sock, peer, data = udp_pair(prio, size)
        sock.setsockopt(socket.SOL_SOCKET, 32, 1 << 25)
        for _ in range(num):
            sock.send(data)
        time.sleep(1)
        peer.close()
        return [[b[name] - a[name] for name in names]
                for a, b in zip(before, netdev.stats("tx"))]
    sums()
    line_rate(stream())
    sums()
    classes(8)
    for prio in range(8):
        got = carried(("tx-packets", "tx-bytes"), prio, 50, 1000)
        # others may have sent something else
        assert 50 <= got[prio][0] < 55 and 50 * 1042 <= got[prio][1] < 51 * 1042, f"{prio}: {got}"
        assert all(num < 5 for i, (num, _) in enumerate(got) if i != prio), f"{prio}: {got}"
    down_up()
    sums()
    set_speed(100)
    set_ring(256)
    put("/sys/class/net/eth0/queues/tx-3/byte_queue_limits/limit_min", 10000000)
    got = carried(("tx-stop", "tx-wake"), 3, 900, 1400)
    assert got[3][0] >= got[3][1] > 0, f"stopped and woken: {got}"
    assert not any(map(any, got[:3] + got[4:])), f"stopped and woken: {got}"
    sums()
    no_classes()
    set_speed(1000)


def main(name):
    """Run one test"""
    try:
        link = Link()
        TESTS[name](link)
        link.after()
    except Exception as exc:  # pylint: disable=broad-except
        traceback.print_exc()
        return 1 if isinstance(exc, AssertionError) else 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
