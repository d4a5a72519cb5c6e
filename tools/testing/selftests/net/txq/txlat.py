#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0

"""
Latency of transmission.

  send64k    one TCP stream of 64 KiB sends: how long send() takes.  The
             standard deviation is what netperf's omni test calls
             STDDEV_LATENCY (netperf -t omni -- -O STDDEV_LATENCY -m 64K
             -d Send), but for the warm-up, which netperf counts in.
  rr         one byte there and back, on an idle link
  rr_loaded  the same beside a stream

Settings: see README.rst.
"""

from lib.py import TxqEnv
from lib.py import ksft_eq, ksft_exit, ksft_ge, ksft_gt, ksft_run
from lib.py.env import INTERVALS, throughput


def _latency(cfg, stats):
    """ Figures of a sample of durations """
    ksft_ge(stats["samples"], cfg.min_samples, "too few samples")
    return [(metric, "count" if metric == "samples" else "us", value)
            for metric, value in stats.items()]


def send64k(cfg, variant):
    """ Duration of 64 KiB sends """
    cfg.apply(variant)
    proc = cfg.start("txq_stream", "--time", str(cfg.secs),
                     "--intervals", str(INTERVALS),
                     "--raw", cfg.raw("send64k", variant))
    before = cfg.counters()
    res = cfg.finish(proc)
    after = cfg.counters()

    figures = throughput(res["mbps"]) + _latency(cfg, res["send"])
    figures.append(("cpu", "core", res["cpu"]))
    cfg.report("send64k", variant, figures)
    ksft_gt(figures[0][2], 0, "nothing received")
    ksft_ge(figures[0][2], cfg.min_mbps, "less than TXQ_MIN_MBPS")
    ksft_gt(after["tx"], before["tx"], "tx_packets does not move")


def _start_rr(cfg, scenario, variant):
    return cfg.start("txq_rr", "--time", str(cfg.secs),
                     "--gap-us", str(cfg.rr_gap_us),
                     "--raw", cfg.raw(scenario, variant))


def rr_idle(cfg, variant):
    """ Round trip on an idle link """
    cfg.apply(variant)
    stats = cfg.finish(_start_rr(cfg, "rr", variant))
    cfg.report("rr", variant, _latency(cfg, stats))


rr_idle.__name__ = "rr"


def rr_loaded(cfg, variant):
    """ Round trip beside a stream, which goes on until the last is back """
    cfg.apply(variant)
    # Ten intervals in the time measured, and as many more to be on the
    # safe side: only those that are complete at the end count.
    stream = cfg.start("txq_stream", "--time", str(2 * cfg.secs),
                       "--intervals", str(2 * INTERVALS))
    stats = cfg.finish(_start_rr(cfg, "rr_loaded", variant))
    early = stream.proc.poll() is not None
    mbps = cfg.finish(stream, stop=True)["mbps"]
    ksft_eq(early, False, "the stream ended first")

    figures = _latency(cfg, stats)
    ksft_ge(len(mbps), 2, "the stream has stalled")
    if len(mbps) >= 2:
        figures.append(throughput(mbps)[0])
        ksft_gt(figures[-1][2], 0, "nothing received")
    cfg.report("rr_loaded", variant, figures)


def main() -> None:
    """ Ksft boiler plate main """
    with TxqEnv(__file__) as cfg:
        ksft_run(cfg.cases([send64k, rr_idle, rr_loaded]), args=(cfg, ))
    ksft_exit()


if __name__ == "__main__":
    main()
