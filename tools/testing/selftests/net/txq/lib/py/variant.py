# SPDX-License-Identifier: GPL-2.0

"""
Variants: the settings of the device that a test runs with, such as
"sg=off,tso=off".  All are undone by defer().
"""

from lib.py import CmdExitFailure, KsftFailEx, KsftSkipEx
from lib.py import defer, ethtool, ip, wait_file

# What ethtool -k prints for what ethtool -K takes
LONG_NAMES = {
    "rx": "rx-checksumming",
    "tx": "tx-checksumming",
    "sg": "scatter-gather",
    "tso": "tcp-segmentation-offload",
    "gso": "generic-segmentation-offload",
    "gro": "generic-receive-offload",
    "lro": "large-receive-offload",
    "rxvlan": "rx-vlan-offload",
    "txvlan": "tx-vlan-offload",
    "rxhash": "receive-hashing",
}


def parse(text):
    """ "sg=off,ipver=6" to its names and values; "default" has none """
    items = {}
    for item in text.split(","):
        if item == "default":
            continue
        name, _, value = item.partition("=")
        known = (value.isdecimal() if name == "gso_max_size" else
                 value in ("4", "6") if name == "ipver" else
                 value in ("on", "off"))
        if not name or not known:
            raise ValueError(f"TXQ_VARIANTS: '{item}' in '{text}' is not "
                             "feature=on|off, gso_max_size=N or ipver=4|6")
        items[name] = value
    return items


def _features(ifname):
    """
    What is asked of each feature, on or off, and whether it is so.

    The headings for groups of features are told apart, they cannot be
    restored: "tso on" would also switch on what was off in the group.
    """
    wanted, active, groups = {}, {}, set()
    last = None
    for line in ethtool(f"-k {ifname}").stdout.splitlines():
        name, _, state = line.partition(": ")
        if not state:
            continue
        if name.startswith("\t"):
            groups.add(last)
        else:
            last = name
        name = name.strip()
        active[name] = state.split()[0]
        wanted[name] = active[name]
        if "[requested on]" in state:
            wanted[name] = "on"
        elif "[requested off]" in state:
            wanted[name] = "off"
    return wanted, active, groups


def _wait_carrier(ifname):
    """ Some drivers restart the device for a change """
    wait_file(f"/sys/class/net/{ifname}/carrier",
              lambda x: x.strip() == "1", sleep=0.01, deadline=20)


def _restore_features(ifname, wanted):
    now, _, groups = _features(ifname)
    args = " ".join(f"{name} {wanted[name]}" for name, state in now.items()
                    if name not in groups and state != wanted[name])
    if args:
        ethtool(f"-K {ifname} {args}")
        _wait_carrier(ifname)
    now = _features(ifname)[0]
    if now != wanted:
        diff = [name for name, state in now.items() if state != wanted[name]]
        raise KsftFailEx(f"{ifname}: not restored: {', '.join(diff)}")


def _apply_features(cfg, items):
    cfg.require_cmd("ethtool")
    wanted = _features(cfg.ifname)[0]
    for name in items:
        if LONG_NAMES.get(name, name) not in wanted:
            raise KsftSkipEx(f"{cfg.ifname} knows no feature {name}")

    args = " ".join(f"{name} {value}" for name, value in items.items())
    defer(_restore_features, cfg.ifname, wanted)
    try:
        ethtool(f"-K {cfg.ifname} {args}")
    except CmdExitFailure as exc:
        raise KsftSkipEx(f"{cfg.ifname} cannot set {args}") from exc
    _wait_carrier(cfg.ifname)

    active = _features(cfg.ifname)[1]
    for name, value in items.items():
        if active[LONG_NAMES.get(name, name)] != value:
            raise KsftSkipEx(f"{cfg.ifname} cannot have {name} {value}")


def _apply_gso_max_size(cfg, size):
    sizes = [f"{key} {cfg.dev[key]}"
             for key in ("gso_max_size", "gso_ipv4_max_size")
             if key in cfg.dev]
    if not sizes:
        raise KsftSkipEx("ip does not show gso_max_size")
    defer(ip, f"link set dev {cfg.ifname} {' '.join(sizes)}")
    try:
        ip(f"link set dev {cfg.ifname} gso_max_size {size}")
    except CmdExitFailure as exc:
        raise KsftSkipEx(f"{cfg.ifname} cannot have gso_max_size {size}") \
            from exc


def apply(cfg, text):
    """ Set up cfg's device, and its IP version, for the variant """
    items = parse(text)
    cfg.set_ipver(items.pop("ipver", "4" if cfg.addr_v["4"] else "6"))
    size = items.pop("gso_max_size", None)
    if items:
        _apply_features(cfg, items)
    if size:
        _apply_gso_max_size(cfg, size)
