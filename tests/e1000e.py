# SPDX-License-Identifier: GPL-2.0
"""Tests of the patches for e1000e, run by scripts/test-patches in the lab's guest.

usage: e1000e.py TEST    see tests/e1000e for which patch a test is of

Exit status 0 if it passes, 1 if it fails, 2 if it could not be made.
"""
import contextlib
import ctypes
import fcntl
import importlib
import os
import random
import re
import socket
import subprocess
import sys
import threading
import time
import traceback

NICSIM = "/sys/kernel/debug/nicsim/port0/"
SYS = "/sys/class/net/eth0/"
LIBC = ctypes.CDLL(None, use_errno=True)
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


def put(name, value, where=NICSIM):
    """Write to a knob of the model, or another file"""
    with open(where + name, "w", encoding="ascii") as file:
        file.write(str(value))


def get(name, where=SYS):
    """Read a file of the interface's directory, or another"""
    with open(where + name, encoding="ascii") as file:
        return file.read().strip()


def stat(name):
    """A count of the model"""
    counts = dict(line.split() for line in get("stats", NICSIM).splitlines())
    return int(counts[name])


def in_peer(func):
    """Call func in the peer's network namespace"""
    with open("/proc/self/ns/net", "rb") as own, open("/run/netns/peer", "rb") as peer:
        assert not LIBC.setns(peer.fileno(), 0x40000000)
        try:
            return func()
        finally:
            assert not LIBC.setns(own.fileno(), 0x40000000)


def carrier(want=1):
    """Wait for the link, or its loss"""
    for _ in range(100):
        if get("carrier") == str(want):
            return
        time.sleep(0.1)
    raise AssertionError(f"carrier is not {want}")


def ping(dest="192.0.2.2"):
    """The way there and back is open"""
    shell(f"ping -c 3 -i 0.05 -W 1 {dest}")


def reset(what):
    """Something that starts the device anew, and what is then"""
    shell(what)
    carrier()
    ping()


def tunable(name, value=None):
    """Set a limit of copies; or get it, None if there is none"""
    if value is not None:
        shell(f"ethtool --set-tunable eth0 {name} {value}")
    code, out = run(f"ethtool --get-tunable eth0 {name}")
    return None if code else int(out.split()[-1])


def no_copies():
    """What is sent is mapped"""
    if tunable("tx-copybreak"):
        tunable("tx-copybreak", 0)


def set_speed(mbps):
    """Set the speed of the wire: the link goes and comes back"""
    put("speed", mbps)
    carrier(0)
    carrier()
    assert int(get("speed")) == mbps, "another speed"


def udp_pair(dest="192.0.2.2"):
    """A socket each at both ends"""
    family = socket.AF_INET6 if ":" in dest else socket.AF_INET

    def make():
        sock = socket.socket(family, socket.SOCK_DGRAM)
        sock.setsockopt(socket.SOL_SOCKET, 33, 1 << 25)  # SO_RCVBUFFORCE
        sock.bind((dest, 0))
        return sock
    sock, peer = socket.socket(family, socket.SOCK_DGRAM), in_peer(make)
    sock.setsockopt(socket.SOL_SOCKET, 32, 1 << 25)  # SO_SNDBUFFORCE
    sock.connect(peer.getsockname())
    return sock, peer


def received(peer, wait=0.002):
    """All that arrives, until nothing does for a time"""
    got = []
    peer.settimeout(wait)
    with contextlib.suppress(TimeoutError):
        while True:
            got.append(peer.recv(65536))
    return got


class Stream:
    """A connection to the peer, whose other end checks what arrives"""

    def __init__(self, dest="192.0.2.2"):
        family = socket.AF_INET6 if ":" in dest else socket.AF_INET
        with in_peer(lambda: socket.create_server((dest, 0), family=family)) as listener:
            self.sock = socket.create_connection(listener.getsockname()[:2])
            self.peer = listener.accept()[0]
        self.data = RNG.randbytes(1 << 16) * 2
        self.sent = self.got = 0
        self.fault = None
        self.thread = threading.Thread(target=self.sink)
        self.thread.start()

    def sink(self):
        """Take what arrives"""
        buf = bytearray(1 << 16)
        while True:
            num = self.peer.recv_into(buf)
            if not num:
                return
            start = self.got % (1 << 16)
            if not self.fault and buf[:num] != self.data[start:start + num]:
                self.fault = f"wrong bytes behind {self.got}"
            self.got += num

    def send(self, seconds):
        """Send for a time; wait until it has arrived; bytes"""
        before, end = self.sent, time.monotonic() + seconds
        while time.monotonic() < end:
            start = self.sent % (1 << 16)
            self.sent += self.sock.send(self.data[start:start + (1 << 16)])
        end = time.monotonic() + 5
        while self.got < self.sent and time.monotonic() < end:
            time.sleep(0.001)
        assert self.got == self.sent, f"{self.sent - self.got} bytes do not arrive"
        assert not self.fault, self.fault
        return self.sent - before

    def close(self):
        """No more"""
        self.sock.close()
        self.thread.join()
        self.peer.close()


def large(stream, seconds=0.05):
    """Large sends that the card takes up of a stream; full-sized frames are sent anyway"""
    before, frames = stat("tx_lso"), stat("wire_sent")
    num = stream.send(seconds)
    before, frames = stat("tx_lso") - before, stat("wire_sent") - frames
    print(f"{num} bytes in {frames} frames, {before} large sends, {get('speed')} Mbit/s")
    assert num / 1500 <= frames <= num / 1400 + 20, f"{num} bytes in {frames} frames"
    return before


@test
def tso_live():
    """Connections go on over changes of the speed, and use TSO at 1 Gbit/s only"""
    streams = Stream(), Stream("2001:db8::2")
    for mbps in 1000, 100, 1000, 10, 1000:
        if int(get("speed")) != mbps:
            set_speed(mbps)
        for stream in streams:
            got = large(stream, 0.05 if mbps > 10 else 0.2)
            assert (got > 3) if mbps == 1000 else not got, f"{got} large sends at {mbps} Mbit/s"
    for stream in streams:
        stream.close()


@test
def tso_loss():
    """What is under way when the link is lost is not sent in large pieces at 100 Mbit/s"""
    for size in 256, 64:
        if size != 256:
            shell(f"ethtool -G eth0 tx {size}")
            carrier()
        stream = Stream()
        thread = threading.Thread(target=stream.send, args=[6])
        thread.start()
        time.sleep(0.1)
        set_speed(100)
        before = stat("tx_lso")
        time.sleep(0.5)
        assert stat("tx_lso") == before, f"{stat('tx_lso') - before} large sends at 100 Mbit/s"
        thread.join()
        assert stat("tx_lso") == before, f"{stat('tx_lso') - before} large sends at 100 Mbit/s"
        stream.send(0.1)
        stream.close()
        set_speed(1000)


SEGS, LEN = 5, 1000


def batches():
    """A datagram of five segments is a batch. Whichever mapping fails, the others arrive."""
    sock, peer = udp_pair()
    sock.setsockopt(socket.IPPROTO_UDP, 103, LEN)  # UDP_SEGMENT
    data = RNG.randbytes(SEGS * LEN)
    want = [data[i:i + LEN] for i in range(0, SEGS * LEN, LEN)]
    sock.send(data)
    assert received(peer) == want, "nothing works"
    for k in range(1, 3 * SEGS + 2):
        put("dma_map_fail", k)
        sock.send(data)
        got = received(peer)
        failed = get("dma_map_fail", NICSIM) == "0"
        put("dma_map_fail", 0)
        assert all(frame in want for frame in got), "other data"
        assert len(got) == SEGS - failed, \
            f"mapping {k} failed: {len(got)} of {SEGS - failed} arrive"
        if not failed:
            break
    assert 1 < k <= 3 * SEGS + 1, f"{k - 1} mappings"
    sock.close()
    peer.close()


@test
def doorbell():
    """A mapping that fails leaves nothing unannounced"""
    no_copies()
    for more in "sg off", "sg on", "txvlan off rxvlan off":
        shell(f"ethtool -K eth0 tso off; ethtool -K eth0 {more}")
        carrier()
        ping()
        batches()


def stuck(announced, unannounced):
    """Leave descriptors in the ring, announced and not, that are not going to be sent"""
    sock, peer = udp_pair()
    ping()  # who it is must be known
    put("tx_hang", 1)
    for _ in range(announced):
        sock.send(bytes(LEN))
    if unannounced:
        sock.setsockopt(socket.IPPROTO_UDP, 103, LEN)  # UDP_SEGMENT
        put("dma_map_fail", SEGS)
        sock.send(bytes(SEGS * LEN))
        assert get("dma_map_fail", NICSIM) == "0", "no mapping failed"
    sock.close()
    peer.close()


@test
def flush():
    """A ring that is stuck is flushed, wherever its tail is"""
    no_copies()
    shell("ethtool -K eth0 tso off sg off")
    put("queues/tx-0/byte_queue_limits/limit_min", 1 << 24, SYS)
    carrier()
    for announced, unannounced in (20, False), (20, True), (0, True), (200, False):
        for what in "mtu 1400", "mtu 1500", "down && ip link set eth0 up":
            ping()
            stuck(announced, unannounced)
            shell(f"ip link set eth0 {what}")
            put("tx_hang", 0)
            carrier()
            ping()
    for _ in range(2):
        stuck(20, True)
        shell("rtcwake -m mem -s 5")
        put("tx_hang", 0)
        carrier()
        ping()


def requeues():
    """Packets that came back to the qdisc"""
    return int(re.search(r"requeues (\d+)", shell("tc -s qdisc show dev eth0"))[1])


def awkward(stream):
    """Send a packet of 64 KiB that needs as many descriptors as possible"""
    def data(size):
        start = stream.sent % (1 << 16)
        stream.sent += size
        return stream.data[start:start + size]
    out, into = os.pipe2(os.O_DIRECT)  # each write a page of its own
    for _ in range(15):
        os.write(into, data(1))
        assert os.splice(out, stream.sock.fileno(), 1, flags=4) == 1  # SPLICE_F_MORE
    stream.sock.sendall(data(44 * 1448 - 15))  # two or three pieces
    os.close(out)
    os.close(into)


@contextlib.contextmanager
def full_ring():
    """A small ring, and a function that fills it: small datagrams, then a large packet"""
    # the first interrupt comes at once, those behind it late
    shell("ethtool -G eth0 tx 64; ethtool -C eth0 rx-usecs 500; "
          "ip link set eth0 gso_max_size 65536; sysctl -q net.ipv4.tcp_slow_start_after_idle=0")
    put("queues/tx-0/byte_queue_limits/limit_min", 1 << 24, SYS)
    carrier()
    ping()
    stream, (sock, peer) = Stream(), udp_pair()
    stream.send(0.2)

    def fill(num):
        time.sleep(0.005)
        before = requeues(), stat("tx_descs")
        for _ in range(num):
            sock.send(bytes(18))
        awkward(stream)
        time.sleep(0.01)
        before = requeues() - before[0], stat("tx_descs") - before[1]
        print(f"after {num} small ones: {before[0]} requeues, {before[1]} descriptors")
        got = len(received(peer, 0.001))
        assert got == num, f"{got} of {num} small ones arrive"
        assert stream.got == stream.sent, f"{stream.sent - stream.got} bytes do not arrive"
        assert not stream.fault, stream.fault
        return before[0]
    yield fill
    stream.close()


@test
def reserve():
    """The queue is stopped before a packet finds no room"""
    # one that does not hand what comes to a queue that is stopped
    shell("tc qdisc replace dev eth0 root prio")
    with full_ring() as fill:
        for num in range(12, 25):
            got = fill(num)
            assert not got, f"{got} requeues after {num} small ones"


@test
def map_failed():
    """Packets that cannot be mapped are counted"""
    def count():
        return int(re.search(r"tx_dma_failed: (\d+)", shell("ethtool -S eth0"))[1])
    no_copies()
    ping()
    sock, peer = udp_pair()
    before = count()
    for _ in range(30):
        put("dma_map_fail", 1)
        sock.send(bytes(LEN))
    assert count() == before + 30, f"{count() - before} of 30 failures counted"
    lines = shell("dmesg").count("map failed")
    assert lines < 20, f"{lines} lines in the log"
    sock.close()
    peer.close()


@test
def csum_far():
    """Checksums behind long extension headers are right"""
    shell("ethtool -K eth0 tso off")
    for size in 64, 176, 184, 192, 200, 208, 256, 512:
        stream = Stream("2001:db8::2")
        left, opt = size - 2, b""
        while left:  # options that are to be skipped, padding would be refused
            num = left if left <= 250 else 200
            opt += bytes((0x1e, num - 2)) + bytes(num - 2)
            left -= num
        stream.sock.setsockopt(socket.IPPROTO_IPV6, 59, bytes((0, size // 8 - 1)) + opt)
        try:
            stream.send(0.02)
        except AssertionError as exc:
            raise AssertionError(f"{size} bytes of options: {exc}") from None
        stream.close()


@test
def hang_seen():
    """A transmitter that hangs is noticed though nothing of it interrupts"""
    put("queues/tx-0/byte_queue_limits/limit_min", 1 << 24, SYS)  # or the stack notices
    ping()
    sock, peer = udp_pair()
    put("tx_hang", 1)
    sock.send(bytes(LEN))
    for _ in range(120):
        time.sleep(0.1)
        if "Detected Hardware Unit Hang" in shell("dmesg"):
            break
    else:
        raise AssertionError("a hang of 12 s is not noticed")
    reset("ip link set eth0 down; ip link set eth0 up")
    sock.close()
    peer.close()


def outq(sock):
    """Bytes that are not freed yet"""
    return int.from_bytes(fcntl.ioctl(sock, 0x5411, bytes(4)), sys.byteorder)  # SIOCOUTQ


def per_frame(stream, *names):
    """Counts for each frame of a stream"""
    before = [stat(name) for name in ("wire_sent",) + names]
    stream.send(0.05)
    frames, *counts = [stat(name) - num for name, num in zip(("wire_sent",) + names, before)]
    counts = [round(num / frames, 2) for num in counts]
    print(dict(zip(names, counts)))
    return counts


def vlan():
    """VLAN 5 at both ends"""
    for where, host in ("", 1), ("-n peer", 2):
        shell(f"ip {where} link add link eth0 name v5 type vlan id 5; "
              f"ip {where} addr add 198.51.100.{host}/24 dev v5; "
              f"ip {where} addr add 2001:db8:5::{host}/64 dev v5 nodad; ip {where} link set v5 up")


DESTS = "192.0.2.2", "2001:db8::2", "198.51.100.2", "2001:db8:5::2"


class Mix:
    """Packets of all kinds in turn"""

    def __init__(self):
        for dest in DESTS:
            ping(dest)
        self.pairs = [udp_pair(dest) for dest in DESTS]
        sock, peer = udp_pair()
        sock.setsockopt(socket.SOL_SOCKET, 11, 1)  # SO_NO_CHECK
        self.pairs.append((sock, peer))
        self.streams = [Stream(dest) for dest in DESTS]
        for stream in self.streams:
            stream.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.want = [[] for _ in self.pairs]

    def send(self, num):
        """Send some"""
        for _ in range(num):
            if RNG.random() < 0.5:
                i = RNG.randrange(len(self.pairs))
                data = RNG.randbytes(RNG.choice((1, 18, 100, 214, 215, 1000, 1448, 1472)))
                if DESTS[i % 4].count(":"):
                    data = data[:1452]
                self.pairs[i][0].send(data)
                self.want[i].append(data)
            else:
                stream = RNG.choice(self.streams)
                start = stream.sent % (1 << 16)
                data = stream.data[start:start + RNG.choice((1, 100, 1428, 1448, 3000, 9000))]
                stream.sock.sendall(data)
                stream.sent += len(data)
            if RNG.random() < 0.1:
                time.sleep(RNG.choice((0.00002, 0.0002)))

    def check(self):
        """All arrive as sent"""
        time.sleep(0.002)
        for i, (_, peer) in enumerate(self.pairs):
            got = received(peer)
            assert got == self.want[i], \
                f"UDP {i}: {len(got)} of {len(self.want[i])} datagrams as sent"
            self.want[i].clear()
        for stream in self.streams:
            stream.send(0)

    def close(self):
        """No more"""
        for stream in self.streams:
            stream.close()


@test
def context():
    """A context is not repeated, and is the right one whatever is sent"""
    no_copies()
    tso = "tcp-segmentation-offload: on" in shell("ethtool -k eth0")
    shell("ethtool -K eth0 tso off")
    stream = Stream()
    stream.send(0.1)
    descs, = per_frame(stream, "tx_descs")
    assert 1.9 < descs < 2.1, f"{descs} descriptors a frame"
    stream.close()
    vlan()
    mix = Mix()
    for mode in ("off", "on") if tso else ("off",):
        shell(f"ethtool -K eth0 tso {mode}")
        for what in (None, "ip link set eth0 mtu 1496", "ip link set eth0 mtu 1500",
                     "ethtool -K eth0 rxvlan off", "ethtool -K eth0 rxvlan on",
                     "ip link set eth0 down; ip link set eth0 up", "rtcwake -m mem -s 5"):
            if what:
                shell(what)
                carrier()
                time.sleep(1)
            mix.send(1)
            mix.check()
            mix.send(150)
            mix.check()
        # a packet that is not sent had a context
        sock, peer = udp_pair("2001:db8::2")
        for k in range(1, 40):
            put("dma_map_fail", 1 + k % 2)
            sock.send(bytes(100))
            put("dma_map_fail", 0)
            mix.send(1 + k % 3)
            mix.check()
        sock.close()
        peer.close()
    mix.close()


def fails(cmd):
    """A command that is refused"""
    code, out = run(cmd)
    assert code, f"{cmd} is taken: {out}"


@test
def tx_copy():
    """Frames up to a limit are copied, no others, and nothing leaks"""
    assert tunable("tx-copybreak") is not None, "no tx-copybreak"
    fails("ethtool --set-tunable eth0 tx-copybreak 2049")
    shell("ethtool -K eth0 tso off")
    sock, peer = udp_pair()
    stream = Stream()
    stream.send(0.1)

    def copied(size):
        put("dma_map_fail", 1)
        sock.send(bytes(size - 42))
        used = get("dma_map_fail", NICSIM) == "0"
        put("dma_map_fail", 0)
        assert len(received(peer)) == 1 - used, "it does not arrive"
        return not used
    tunable("tx-copybreak", 0)
    reset("ip link set eth0 down && ip link set eth0 up")  # what was there is freed
    stream.send(0.1)
    time.sleep(0.01)
    live, (descs, reads) = stat("dma_live"), per_frame(stream, "tx_descs", "dma_reads")
    for limit in 1518, 60, 256, 1000, 2048, 0:
        assert tunable("tx-copybreak", limit) == limit
        for what in (None, "ethtool -G eth0 tx 512", "ip link set eth0 mtu 1400",
                     "ip link set eth0 mtu 1500", "ethtool -G eth0 tx 256",
                     "ip link set eth0 down && ip link set eth0 up") if limit in (1518, 0) \
                else (None,):
            if what:
                reset(what)
            assert tunable("tx-copybreak") == limit, f"{limit} is lost by {what}"
            for size in 60, 64, limit - 1, limit, limit + 1, 1000, 1442:
                if 43 < size <= int(get("mtu")) + 14:
                    assert copied(size) == (size <= limit), \
                        f"limit {limit}, {size} bytes: {copied(size)}"
        now = per_frame(stream, "tx_descs", "dma_reads")
        if limit in (1518, 2048):
            assert now[0] < 1.1 and now[1] < reads - 0.5, \
                f"{now} with copies, {[descs, reads]} without"
        time.sleep(0.01)
        slots = stat("dma_live") - live
        want = 128 if limit or slots else 0
        assert want <= slots <= want + 2, f"limit {limit}: {slots} mappings more"
    # what was down has none; it is set for the next time
    shell("ip link set eth0 down")
    assert tunable("tx-copybreak", 1000) == 1000
    reset("ip link set eth0 up")
    assert copied(1000) and not copied(1001), "set while down"
    reset("ip link set eth0 down; ethtool --set-tunable eth0 tx-copybreak 0; ip link set eth0 up")
    time.sleep(0.01)
    assert live <= stat("dma_live") <= live + 2, f"{stat('dma_live') - live} mappings left"
    # without the memory it stays as it was
    for k in 1, 50, 128:
        put("dma_map_fail", k)
        fails("ethtool --set-tunable eth0 tx-copybreak 1518")
        assert get("dma_map_fail", NICSIM) == "0" and not tunable("tx-copybreak")
    time.sleep(0.01)
    assert live <= stat("dma_live") <= live + 2, f"{stat('dma_live') - live} mappings left"
    stream.send(0.05)
    stream.close()


@test
def tx_copy_default():
    """What is sent is copied by default, as long as the MTU is"""
    assert tunable("tx-copybreak") == 1518, f"{tunable('tx-copybreak')} by default"
    vlan()
    for dest in DESTS[:3]:
        ping(dest)
        sock, peer = udp_pair(dest)
        stream = Stream(dest)
        stream.send(0.05)
        descs, = per_frame(stream, "tx_descs")
        assert descs < 1.1, f"{descs} descriptors a frame"
        put("dma_map_fail", 1)
        sock.send(bytes(1472 - 20 * (":" in dest)))
        assert get("dma_map_fail", NICSIM) == "1", f"a full-sized frame to {dest} is mapped"
        put("dma_map_fail", 0)
        stream.close()
        sock.close()
        peer.close()


@test
def tx_copy_load():
    """Under load, what is sent stays right, whatever is set"""
    assert tunable("tx-copybreak") is not None, "no tx-copybreak"
    vlan()
    mix = Mix()
    for mode in "tso off", "sg off", "sg on tso on":
        run(f"ethtool -K eth0 {mode}")
        for limit in 1518, 200, 0, 256, 2048, 0, 1518:
            tunable("tx-copybreak", limit)
            mix.send(60)
        mix.check()
        for ring in 64, 1024, 256:
            reset(f"ethtool -G eth0 tx {ring}")
            mix.send(100)
            mix.check()
    mix.close()
    live = stat("dma_live")
    reset("ip link set eth0 down; ip link set eth0 up")
    assert abs(stat("dma_live") - live) <= 4, f"{live} mappings, then {stat('dma_live')}"


@test
def msix_napi():
    """The interrupt handler does not clean the ring"""
    shell("ethtool -K eth0 tso off")
    stream = Stream()
    for what in None, "ethtool -G eth0 tx 4096", "echo 1 >/sys/class/net/eth0/threaded":
        if what:
            reset(what)
        stream.send(0.1)
        most = stat("irq_unmaps_max")
        print(f"{most} mappings undone in an interrupt at most")
        assert most <= 1, f"{most} mappings undone in an interrupt"
    stream.close()


def truesize(size, back=False):
    """What a received frame takes of memory"""
    sock, peer = udp_pair("192.0.2.2")
    if not back:  # the device under test receives
        own = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        own.bind(("192.0.2.1", 0))
        peer.connect(own.getsockname())
        sock, peer = peer, own
    sock.send(bytes(size - 42))
    time.sleep(0.01)
    info = peer.getsockopt(socket.SOL_SOCKET, 55, 36)  # SO_MEMINFO
    assert len(received(peer)) == 1
    sock.close()
    peer.close()
    return int.from_bytes(info[:4], sys.byteorder)


PARAM = "/sys/module/e1000e/parameters/copybreak"


@test
def rx_copy_equal():
    """Frames of exactly the limit are copied, whatever the MTU"""
    limit = int(get("", PARAM))
    for size in 100, limit - 1, limit, limit + 1, 1000:
        got = truesize(size)
        assert (got < 2048) == (size <= limit), f"limit {limit}, {size} bytes: {got} of memory"


@test
def rx_copybreak():
    """The limit is that of the module until the port has its own"""
    assert tunable("rx-copybreak") == int(get("", PARAM)), "not that of the module"

    def check(limit, back=False):
        for size in 60, limit - 1, limit, limit + 1, 600:
            if size > 42:
                got = truesize(size, back)
                assert (got < 2048) == (size <= limit), f"limit {limit}, {size} bytes: {got}"
    check(256)
    if os.access(PARAM, os.W_OK):
        put("", 300, PARAM)
        assert tunable("rx-copybreak") == 300
        check(300)
        put("", 256, PARAM)
    fails("ethtool --set-tunable eth0 rx-copybreak 20000")
    for limit in 128, 0, 500:
        assert tunable("rx-copybreak", limit) == limit
        for what in None, "ip link set eth0 down && ip link set eth0 up", "ethtool -G eth0 rx 512":
            if what:
                reset(what)
            assert tunable("rx-copybreak") == limit, f"{limit} is lost by {what}"
            check(limit)
        check(256, True)


@test
def tx_usecs():
    """The interrupt comes as long after what was sent as is set, also after resets"""
    def reported():
        got = re.search(r"tx-usecs:\s*(\S+)", shell("ethtool -c eth0"))[1]
        return -1 if got == "n/a" else int(got)
    assert reported() == 8, f"{reported()} by default"
    shell("ethtool -C eth0 rx-usecs 0")
    fails("ethtool -C eth0 tx-usecs 67200")
    sock, peer = udp_pair()
    sock.send(bytes(LEN))
    time.sleep(0.1)
    for usecs in 100, 1000, 20000, 0, 300:
        shell(f"ethtool -C eth0 tx-usecs {usecs}")
        for what in None, "ip link set eth0 mtu 1400", "ip link set eth0 mtu 1500", \
                "ip link set eth0 down && ip link set eth0 up":
            if what:
                reset(what)
            assert abs(reported() - usecs) <= 1, f"{reported()} for {usecs} after {what}"
            for _ in range(3):  # the watchdog's interrupt may be one of them
                time.sleep(0.1)
                sock.send(bytes(LEN))
                time.sleep(max(usecs / 1e6 * 0.8 - 0.00006, 0))
                if not usecs or outq(sock):
                    break
            else:
                raise AssertionError(f"{usecs} us: too early after {what}")
            if usecs:
                time.sleep(usecs / 1e6 * 0.25)
            time.sleep(0.0001)
            assert not outq(sock), f"{usecs} us: too late after {what}"
    # the module's limit from the first frame on is raised, not lowered
    shell("ethtool -C eth0 tx-usecs 5000")
    before = stat("irqs")
    for _ in range(100):
        sock.send(bytes(LEN))
        time.sleep(0.001)
    num = stat("irqs") - before
    peer.close()
    assert 15 <= num <= 30, f"{num} interrupts of 100 frames in 100 ms, and 5 ms"


@test
def tx_usecs_msi():
    """The same on another card, with MSI"""
    tx_usecs()


@test
def tx_usecs_msix():
    """With MSI-X there is no such thing"""
    assert re.search(r"tx-usecs:\s*0", shell("ethtool -c eth0")), "not 0"
    fails("ethtool -C eth0 tx-usecs 10")
    shell("ethtool -C eth0 rx-usecs 100")
    assert re.search(r"rx-usecs:\s*100", shell("ethtool -c eth0"))


def bursts(dest="192.0.2.2"):
    """Frames of a packet that the stack hands down in a stream"""
    stream = Stream(dest)
    stream.send(0.1)
    before = stat("tx_skbs"), stat("wire_sent")
    stream.send(0.05)
    skbs, frames = stat("tx_skbs") - before[0], stat("wire_sent") - before[1]
    stream.close()
    print(f"{dest}: {frames / skbs:.2f} frames a packet")
    return frames / skbs


@test
def gso_default():
    """Small bursts by default, but the user's, and large ones for TSO on I219"""
    i219 = get("device/device") == "0x15b7"
    assert 1 < bursts() <= 3 and 1 < bursts("2001:db8::2") <= 3, "not small by default"
    if i219:
        shell("ethtool -K eth0 tso on")
        assert bursts() > 20, "not large with TSO"
        shell("ethtool -K eth0 tso off")
        assert 1 < bursts() <= 3, "not small again"
    else:
        shell("ethtool -K eth0 tso off")
        assert 1 < bursts() <= 3, "not small without TSO"
    shell("ip link set eth0 gso_max_size 65536")
    assert bursts() > 20, "not what the user wants"
    shell("ethtool -K eth0 tso on; ethtool -K eth0 tso off")
    assert bursts() > 20, "not what the user wanted"


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
        """Statistics of the queue"""
        got = [q for q in self.dump("qstats_get", scope=["queue"]) if q["queue-type"] == kind]
        assert len(got) == 1, got
        return got[0]


@test
def napi_link():
    """Queues tell their NAPI instance, and it its interrupt, whatever happens"""
    netdev, ids = Netdev(), set()
    lines = [line for line in get("", "/proc/interrupts").splitlines() if "0000:00:00.0" in line]
    msix = len(lines) > 1
    for what in None, "ip link set eth0 down && ip link set eth0 up", "rtcwake -m mem -s 5", \
            "ip link set eth0 mtu 1400":
        if what:
            reset(what)
        napis = {napi["id"]: napi for napi in netdev.dump("napi_get")}
        queues = netdev.dump("queue_get")
        assert sorted(q["type"] for q in queues) == ["rx", "tx"], queues
        ids |= {q.get("napi-id") for q in queues if q["type"] == "rx"}
        for queue in queues:
            if msix and queue["type"] == "tx":
                # an instance that cannot be busy polled has no ID
                assert "napi-id" not in queue, queue
                continue
            irq = napis.get(queue.get("napi-id"), {}).get("irq")
            line, = re.findall(rf"^ *{irq}: .*", get("", "/proc/interrupts"), re.M) or [""]
            assert line.endswith(f"eth0-{queue['type']}-0" if msix else "eth0"), \
                f"{queue}, {napis}: {line}, after {what}"
    assert len(ids) == 1, f"{ids} in turn"


@test
def queue_stats():
    """Counts of queues are of what they carry, and add up to the device's"""
    netdev = Netdev()

    def sums():
        for name in "rx_packets", "rx_bytes", "tx_packets", "tx_bytes":
            want = int(get("statistics/" + name))
            got = netdev.stats(name[:2])[name.replace("_", "-")]
            assert got == want, f"{name}: {got}, the device has {want}"
    names = "tx-needs-csum", "tx-hw-gso-packets", "tx-hw-gso-wire-packets"

    def counts(func):
        before = [netdev.stats("tx")[name] for name in names] + [stat("tx_lso"), stat("tx_csum")]
        func()
        time.sleep(0.01)
        now = [netdev.stats("tx")[name] for name in names] + [stat("tx_lso"), stat("tx_csum")]
        return [b - a for a, b in zip(before, now)]
    sums()
    stream = Stream()
    for mode in "off", "on":
        if run(f"ethtool -K eth0 tso {mode}")[0]:
            continue
        frames = stat("wire_sent")
        needs, packets, wire, lso, csum = counts(lambda: stream.send(0.1))
        frames = stat("wire_sent") - frames
        print(mode, needs, packets, wire, lso, csum, frames)
        assert packets == lso, f"{packets} large sends, {lso} taken up"
        assert needs == csum + wire, f"{needs} to checksum, {csum} and {wire} were"
        assert frames - 20 <= needs <= frames, f"{needs} of {frames}"
        assert bool(packets) == (mode == "on"), f"{packets} large sends"
        sums()
    reset("ip link set eth0 down && ip link set eth0 up")
    sums()
    reset("ethtool -G eth0 tx 64; ethtool -C eth0 rx-usecs 500")
    put("queues/tx-0/byte_queue_limits/limit_min", 1 << 24, SYS)
    before = netdev.stats("tx")
    stream.send(0.1)
    time.sleep(0.01)
    now = netdev.stats("tx")
    stop, wake = (now[name] - before[name] for name in ("tx-stop", "tx-wake"))
    assert stop == wake > 10, f"{stop} times stopped, {wake} woken"
    sums()
    stream.close()


def main(name):
    """Run one test"""
    try:
        TESTS[name]()
    except Exception as exc:  # pylint: disable=broad-except
        traceback.print_exc()
        sys.stdout.flush()
        # threads may hang
        os._exit(1 if isinstance(exc, AssertionError) else 2)  # pylint: disable=protected-access
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
