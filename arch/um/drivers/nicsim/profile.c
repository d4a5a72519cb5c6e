// SPDX-License-Identifier: GPL-2.0
/*
 * nicsim: what things cost, by platform.
 *
 * With time-travel=inf-cpu all code runs in no time. The CPU time that matters
 * to a network card's driver is charged here: register accesses and interrupt
 * entry by pci.c, what a driver copies by dma.c, and the work per skb and
 * packet by probes on the stack's own tracepoints, which see every card's
 * driver alike. The charge advances simulated time on the CPU, so a machine can
 * be busy, and what is not charged is idle.
 *
 * The desktop profile, a 3 to 4 GHz x86 with the card on a 2.5 GT/s x1 link
 * behind the chipset. No value was fitted to anything measured with this
 * simulator.
 *
 * mmio_read_ns: 1581 measured on a server (32-bit, Intel 82576 VF, README of
 *	andre-richter/pcie-lat), 850 for a round trip begun by an FPGA on a
 *	desktop (i7-4771); between them.
 * mmio_write_ns: uncached posted stores leave a core 50 to 300 ns apart (Intel
 *	developer forum); the lower half, a doorbell is a single store.
 * irq_ns, irq_latency_ns: estimates; no citable figure of the kernel's entry
 *	and exit cost with mitigations was found.
 * dma_read_ns: an estimate: some 550 for 64 bytes on a server's gen3 x8 slot
 *	(Neugebauer et al., Understanding PCIe performance for end host
 *	networking, SIGCOMM 2018; as quoted by others), serialisation at x1, and
 *	the hop over the chipset.
 * dma_write_ns: about half of that; an estimate.
 * dma_mbps: 2.5 GT/s less 8b/10b, times 128/(128 + 24) for headers and framing
 *	of packets with 128 bytes of payload (PCI Express Base Specification).
 * skb_ns, xmit_ns: 1.05 million packets a second through FreeBSD's socket send
 *	path and 4 million by Linux' pktgen, which is driver only, on a 2.9 GHz
 *	i7-870 (Rizzo, netmap, USENIX ATC 2012): 950 and 250 ns. 350 ns for
 *	pktgen with the qdisc in the log of commit ba27b4cdaaa6.
 * seg_ns: an estimate: an skb allocated and freed, a header copied.
 * tso_ns: an estimate: a header built, data mapped.
 * frag_ns, rx_ns, rx_skb_ns: estimates; 435 ns a packet for a whole receive
 *	path without GRO and 250 with it in the log of commit ed16b8a4d1ca.
 * copy_ps: 11 to 13 GB/s, cold, Skylake desktop (Stack Overflow 39260020 and
 *	43343231).
 * csum_ps: one add with carry a cycle for 8 bytes.
 *
 * The atom profile is a board with a low-power core, as these cards are often
 * found on: the desktop's code at a third of the speed, the same bus. It is an
 * estimate, for telling what hinges on a fast CPU.
 *
 * The armada profile is a 1.2 GHz in-order core with the port on the chip's own
 * bus. Public figures of single costs were not found, all are estimates:
 * mmio_read_ns, mmio_write_ns, dma_read_ns, dma_write_ns: some forty and ten
 *	cycles of a 200 to 250 MHz bus; no link to serialise on.
 * dma_mbps: 64 bits at 200 MHz.
 * copy_ps: 1 GB/s of memcpy() measured by lmbench on a 1.25 GHz Cortex-A53
 *	(TI, SPRADO9).
 * the others: so that sending a Gigabit a second without copying (sendfile) or
 *	TSO, with an interrupt every four packets, keeps some 13 % of the core
 *	busy. A report measured 10 to 13 % on an Armada 370 (netdev, 21 Nov
 *	2013). Nothing else was fitted.
 *
 * The ideal profile is the peer's: it answers at once and never limits.
 */
#define pr_fmt(fmt) "nicsim: " fmt

#include <linux/skbuff.h>
#include <trace/events/net.h>
#include "nicsim.h"

static const struct nicsim_profile profiles[] = {
	{
		.name			= "desktop",
		.mmio_read_ns		= 1200,
		.mmio_write_ns		= 100,
		.irq_ns			= 800,
		.irq_latency_ns		= 500,
		.dma_read_ns		= 1000,
		.dma_write_ns		= 450,
		.dma_mbps		= 1680,
		.skb_ns			= 700,
		.xmit_ns		= 250,
		.frag_ns		= 30,
		.seg_ns			= 200,
		.tso_ns			= 60,
		.rx_ns			= 200,
		.rx_skb_ns		= 600,
		.copy_ps		= 85,
		.csum_ps		= 35,
	}, {
		.name			= "atom",
		.mmio_read_ns		= 1500,
		.mmio_write_ns		= 200,
		.irq_ns			= 2400,
		.irq_latency_ns		= 500,
		.dma_read_ns		= 1000,
		.dma_write_ns		= 450,
		.dma_mbps		= 1680,
		.skb_ns			= 2100,
		.xmit_ns		= 750,
		.frag_ns		= 90,
		.seg_ns			= 600,
		.tso_ns			= 180,
		.rx_ns			= 600,
		.rx_skb_ns		= 1800,
		.copy_ps		= 250,
		.csum_ps		= 105,
	}, {
		.name			= "armada",
		.mmio_read_ns		= 200,
		.mmio_write_ns		= 50,
		.irq_ns			= 1500,
		.irq_latency_ns		= 200,
		.dma_read_ns		= 200,
		.dma_write_ns		= 100,
		.dma_mbps		= 12800,
		.skb_ns			= 2500,
		.xmit_ns		= 600,
		.frag_ns		= 80,
		.seg_ns			= 500,
		.tso_ns			= 250,
		.rx_ns			= 600,
		.rx_skb_ns		= 2000,
		.copy_ps		= 1000,
		.csum_ps		= 300,
	}, {
		.name			= "ideal",
		.dma_read_ns		= 100,
		.dma_write_ns		= 100,
		.dma_mbps		= 64000,
	},
};

/**
 * nicsim_profile_find - look a profile up
 * @name: its name
 *
 * Context: any.
 * Return: the profile, or NULL when there is none of that name.
 */
const struct nicsim_profile *nicsim_profile_find(const char *name)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(profiles); i++)
		if (!strcmp(profiles[i].name, name))
			return &profiles[i];
	return NULL;
}

/**
 * nicsim_charge - let the CPU be busy
 * @port: the port on whose account
 * @ns: mean cost; the jitter is added here
 *
 * Context: any but a hardware event. Devices go on while it lasts, interrupts
 *	are taken at its end if they are enabled.
 */
void nicsim_charge(struct nicsim_port *port, u64 ns)
{
	if (!ns)
		return;
	ns = nicsim_jitter(ns);
	port->busy_ns += ns;
	time_travel_ndelay(ns);
}

static struct nicsim_port *netdev_port(const struct net_device *dev)
{
	int i;

	for (i = 0; i < NICSIM_PORTS; i++)
		if (nicsim_ports[i] && nicsim_ports[i]->dev &&
		    dev->dev.parent == nicsim_ports[i]->dev)
			return nicsim_ports[i];
	return NULL;
}

/* an skb on its way to the qdisc: what the stack did to bring it there */
static void probe_queue(void *data, struct sk_buff *skb)
{
	struct nicsim_port *port = netdev_port(skb->dev);
	const struct nicsim_profile *p;
	u64 ns, copied;

	if (!port)
		return;
	p = port->profile;
	port->tx_skbs++;

	/* what a socket sends comes from user space, what is forwarded not */
	copied = skb->sk ? skb->len : 0;
	ns = skb->sk ? p->skb_ns : 0;
	/* cut by the stack, and copied again into segments without SG */
	if (skb_is_gso(skb) &&
	    !net_gso_ok(skb->dev->features, skb_shinfo(skb)->gso_type)) {
		ns += (u64)p->seg_ns * skb_shinfo(skb)->gso_segs;
		if (!(skb->dev->features & NETIF_F_SG))
			copied += skb->len;
	}
	ns += copied * p->copy_ps / 1000;
	if (skb->ip_summed == CHECKSUM_PARTIAL &&
	    !(skb->dev->features & NETIF_F_CSUM_MASK))
		ns += (u64)skb->len * p->csum_ps / 1000;

	nicsim_charge(port, ns);
}

/* a packet that is handed to the driver */
static void probe_xmit(void *data, const struct sk_buff *skb,
		       const struct net_device *dev)
{
	struct nicsim_port *port = netdev_port(dev);
	u64 ns;

	if (!port)
		return;
	port->tx_packets++;
	ns = port->profile->xmit_ns +
	     port->profile->frag_ns * skb_shinfo(skb)->nr_frags;
	if (port->ops->sw_tso && skb_is_gso(skb))
		ns += (u64)port->profile->tso_ns * skb_shinfo(skb)->gso_segs;
	nicsim_charge(port, ns);
}

static void probe_gro(void *data, const struct sk_buff *skb)
{
	struct nicsim_port *port = netdev_port(skb->dev);

	if (port)
		nicsim_charge(port, port->profile->rx_ns);
}

static void probe_receive(void *data, struct sk_buff *skb)
{
	struct nicsim_port *port = netdev_port(skb->dev);

	if (port)
		nicsim_charge(port, port->profile->rx_skb_ns);
}

/**
 * nicsim_profile_init - start charging
 *
 * Context: process.
 * Return: 0 or a negative error.
 */
int nicsim_profile_init(void)
{
	int err;

	err = register_trace_net_dev_queue(probe_queue, NULL);
	err = err ?: register_trace_net_dev_start_xmit(probe_xmit, NULL);
	err = err ?: register_trace_napi_gro_receive_entry(probe_gro, NULL);
	err = err ?: register_trace_netif_receive_skb(probe_receive, NULL);
	return err;
}
