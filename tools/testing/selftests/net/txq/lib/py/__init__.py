# SPDX-License-Identifier: GPL-2.0

"""
Environment of the txq tests: the driver test environment and, on top of it,
TxqEnv with the tests' settings, peer and reports.
"""

import sys
from pathlib import Path

KSFT_DIR = (Path(__file__).parent / "../../../..").resolve()

try:
    sys.path.append(KSFT_DIR.as_posix())

    # drivers/net takes from here what it does not find in its own directory
    from net.lib.py import EthtoolFamily, NetdevFamily, NetshaperFamily, \
        NlError, RtnlFamily, DevlinkFamily, PSPFamily, Netlink
    from net.lib.py import NetNS, NetNSEnter, NetdevSimDev, UserNetNS
    from net.lib.py import CmdExitFailure
    from net.lib.py import bkg, cmd, defer, ethtool, fd_read_timeout, ip, \
        rand_port, wait_port_listen, wait_file
    from net.lib.py import KsftSkipEx, KsftFailEx, KsftXfailEx
    from net.lib.py import ksft_exit, ksft_pr, ksft_run, ksft_setup, \
        ksft_variants, KsftNamedVariant
    from net.lib.py import ksft_eq, ksft_ge, ksft_gt

    __all__ = ["EthtoolFamily", "NetdevFamily", "NetshaperFamily",
               "NlError", "RtnlFamily", "DevlinkFamily", "PSPFamily",
               "Netlink",
               "NetNS", "NetNSEnter", "NetdevSimDev", "UserNetNS",
               "CmdExitFailure",
               "bkg", "cmd", "defer", "ethtool", "fd_read_timeout", "ip",
               "rand_port", "wait_port_listen", "wait_file",
               "KsftSkipEx", "KsftFailEx", "KsftXfailEx",
               "ksft_exit", "ksft_pr", "ksft_run", "ksft_setup",
               "ksft_variants", "KsftNamedVariant",
               "ksft_eq", "ksft_ge", "ksft_gt"]

    from drivers.net.lib.py import NetDrvEpEnv
    from .env import TxqEnv

    __all__ += ["NetDrvEpEnv", "TxqEnv"]
except ModuleNotFoundError as e:
    print("Failed importing `net` library from kernel sources")
    print(str(e))
    sys.exit(4)
