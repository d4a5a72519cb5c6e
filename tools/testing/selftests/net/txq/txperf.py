#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0

"""
Throughput of transmission, with what it costs: CPU time and interrupts.

  tx1, tx5, tx12
             one, five or twelve TCP streams to the peer
  rx5        five from the peer
  sndbuf4k, sndbuf8k, sndbuf16k
             one stream with an SO_SNDBUF of 4, 8 or 16 KiB: it can go on
             only when what was sent before has been completed

Settings: see README.rst.
"""

from lib.py import TxqEnv
from lib.py import ksft_exit, ksft_ge, ksft_gt, ksft_run
from lib.py.env import INTERVALS, throughput


def _measure(cfg, scenario, variant, *args):
    """ Run streams, report and return the goodput """
    cfg.apply(variant)
    proc = cfg.start("txq_stream", "--time", str(cfg.secs),
                     "--intervals", str(INTERVALS), *args)
    before = cfg.counters()
    res = cfg.finish(proc)
    after = cfg.counters()

    figures = throughput(res["mbps"])
    figures.append(("cpu", "core", res["cpu"]))
    frames = after["frames"] - before["frames"]
    if after["irqs"] is not None and frames:
        irqs = after["irqs"] - before["irqs"]
        figures.append(("irq_per_frame", "irq/frame", irqs / frames))
    cfg.report(scenario, variant, figures)

    for key in ("tx", "rx"):
        ksft_gt(after[key], before[key], f"{key}_packets does not move")
    ksft_gt(figures[0][2], 0, "nothing received")
    return figures[0][2]


def _at_full_rate(cfg, scenario, variant, *args):
    mbps = _measure(cfg, scenario, variant, *args)
    ksft_ge(mbps, cfg.min_mbps, "less than TXQ_MIN_MBPS")


def tx1(cfg, variant):
    """ One stream """
    _at_full_rate(cfg, "tx1", variant)


def tx5(cfg, variant):
    """ Five streams """
    _at_full_rate(cfg, "tx5", variant, "--streams", "5")


def tx12(cfg, variant):
    """ Twelve streams """
    _at_full_rate(cfg, "tx12", variant, "--streams", "12")


def rx5(cfg, variant):
    """ Five streams from the peer """
    _at_full_rate(cfg, "rx5", variant, "--streams", "5", "--reverse")


def sndbuf4k(cfg, variant):
    """ SO_SNDBUF of 4 KiB """
    _measure(cfg, "sndbuf4k", variant, "--sndbuf", "4096")


def sndbuf8k(cfg, variant):
    """ SO_SNDBUF of 8 KiB """
    _measure(cfg, "sndbuf8k", variant, "--sndbuf", "8192")


def sndbuf16k(cfg, variant):
    """ SO_SNDBUF of 16 KiB """
    _measure(cfg, "sndbuf16k", variant, "--sndbuf", "16384")


def main() -> None:
    """ Ksft boiler plate main """
    with TxqEnv(__file__) as cfg:
        ksft_run(cfg.cases([tx1, tx5, tx12, rx5,
                            sndbuf4k, sndbuf8k, sndbuf16k]),
                 args=(cfg, ))
    ksft_exit()


if __name__ == "__main__":
    main()
