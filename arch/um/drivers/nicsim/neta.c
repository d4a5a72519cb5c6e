// SPDX-License-Identifier: GPL-2.0
/*
 * nicsim: Marvell NETA, the Gigabit Ethernet port of the Armada 370, XP, 38x
 * and 3700.
 *
 * Forms: "neta" is the Armada 3700's, with one interrupt; "neta-xp" the Armada
 * XP's, with cause and mask registers a CPU and a per-CPU interrupt; "neta-370"
 * the Armada 370's, which is like it but has a FIFO too small for checksums of
 * jumbo frames, and RGMII with a fixed link instead of SGMII.
 *
 * Sources, by what they told:
 *	registers and descriptors: drivers/net/ethernet/marvell/mvneta.c and the
 *	comments in it
 *	arbiter and token buckets of the transmit queues (TX_CMD_1, TQFPC,
 *	TQxAC), bits of the cause registers, parser results in receive
 *	descriptors, largest frame with a checksum (9800 bytes, 2048 on the
 *	370): Marvell's own driver for this unit, mv_neta, as found in public
 *	kernel trees of vendors. It says that a queue's weight in units of 256
 *	bytes must exceed the MTU, and that bandwidth is set in bits per period.
 * Postulated, since no source says:
 *	The state at power-on of the arbiter: see nicsim.neta_arb. With the
 *	legacy bit (3) of TX_CMD_1 set, the highest queue that has something
 *	wins; so it does among the queues of TQFPC without it, before those
 *	that share by weight.
 *	Weighted queues take turns by a count of bytes that carries over, and
 *	one of weight 0 gets nothing.
 *	The token buckets count only while bits 0 and 3 of TX_CMD_1 are clear,
 *	and start full; that of the port is not modelled.
 *	Up to eight descriptors a fetch; four outstanding reads of 128 bytes
 *	(sixteen 64-bit words, the burst size that mvneta sets); a TX FIFO as
 *	large as the largest frame with a checksum; an RX FIFO of 32 KiB.
 *	Descriptors count as sent when the last bit of their packet has left.
 *	A transmit queue has its cause set while more descriptors than the
 *	threshold are sent and not acknowledged, so that 0 is an interrupt each.
 *	A receive queue has it while at least as many as the threshold are
 *	occupied, or any since the time set; the time starts anew with the
 *	first frame, and with an acknowledgment that leaves some.
 *	A frame for a queue without a free descriptor is discarded.
 *	In-band negotiation takes 1.6 ms after the PHY has a link (link timer of
 *	SGMII). The PHY is always on and offers all speeds.
 *	Without a link packets wait in their queue.
 *
 * Not modelled: hardware buffer management, hardware forwarding, parser
 * (PnC), EJP, legacy bandwidth limits, pause frames, LPI, half duplex, receive
 * errors, PTP, 2.5 Gbit/s, wake-up.
 */
#include <linux/bitfield.h>
#include <linux/etherdevice.h>
#include <linux/if_vlan.h>
#include <linux/ip.h>
#include <linux/moduleparam.h>
#include <linux/unaligned.h>
#include <net/checksum.h>
#include "nicsim.h"

/* one name for the parameters of all files */
#undef MODULE_PARAM_PREFIX
#define MODULE_PARAM_PREFIX "nicsim."

static char *neta_arb = "legacy";
module_param(neta_arb, charp, 0444);
MODULE_PARM_DESC(neta_arb,
		 "NETA's TX arbiter at power-on: legacy, fixed or wrr");

#define NETA_REGS		0x4000
#define NETA_QUEUES		8
#define NETA_CPUS		4
#define NETA_LINE		8	/* descriptors a fetch */
#define NETA_HELD		32	/* descriptors a queue holds */
#define NETA_SEGS		64	/* packets in the TX FIFO */
#define NETA_READS		256	/* data reads under way */
#define NETA_RX_BUSY		64	/* frames being written */
#define NETA_RX_FIFO		32768
#define NETA_MH			2	/* bytes before a received frame */
#define NETA_AN_NS		(1600ULL * NSEC_PER_USEC)

/* registers; (q) is a queue */
#define RXQ_CONFIG(q)		(0x1400 + 4 * (q))
#define  RXQ_HW_BUF_ALLOC	BIT(0)
#define  RXQ_PKT_OFFSET		GENMASK(11, 8)
#define RXQ_BASE(q)		(0x1480 + 4 * (q))
#define RXQ_SIZE(q)		(0x14a0 + 4 * (q))
#define  RXQ_DESC_NUM		GENMASK(13, 0)
#define  RXQ_BUF_SIZE		GENMASK(31, 19)
#define RXQ_THRESHOLD(q)	(0x14c0 + 4 * (q))
#define  RXQ_OCCUPIED_THRESH	GENMASK(13, 0)
#define RXQ_STATUS(q)		(0x14e0 + 4 * (q))
#define RXQ_UPDATE(q)		(0x1500 + 4 * (q))
#define  RXQ_DEC_OCCUPIED	GENMASK(7, 0)
#define  RXQ_ADD_FREE		GENMASK(23, 16)
#define RX_RESET		0x1cc0
#define  DMA_RESET		BIT(0)
#define PORT_CONFIG		0x2400
#define  UNI_PROMISC		BIT(0)
#define  DEF_RXQ		GENMASK(3, 1)
#define  DEF_RXQ_ARP		GENMASK(6, 4)
#define MAC_ADDR_LOW		0x2414
#define MAC_ADDR_HIGH		0x2418
#define VLAN_PRIO_TO_RXQ	0x2440
#define PORT_STATUS		0x2444
#define  TX_IN_PROGRESS		BIT(0)
#define  TX_FIFO_EMPTY		BIT(8)
#define TXQ_CMD			0x2448
#define RX_DISCARD		0x2484
#define RX_OVERRUN		0x2488
#define CPU_MAP(cpu)		(0x2540 + 4 * (cpu))
#define RXQ_TIME(q)		(0x2580 + 4 * (q))
#define INTR_NEW_CAUSE		0x25a0
#define INTR_NEW_MASK		0x25a4
#define  INTR_TX		GENMASK(7, 0)
#define  INTR_RX		GENMASK(15, 8)
#define  INTR_MISC		BIT(31)
#define INTR_MISC_CAUSE		0x25b0
#define INTR_MISC_MASK		0x25b4
#define  MISC_LINK_CHANGE	BIT(1)
#define INTR_ENABLE		0x25b8
#define RXQ_CMD			0x2680
#define GMAC_CTRL_0		0x2c00
#define  GMAC_ENABLE		BIT(0)
#define  GMAC_MAX_RX_SIZE	GENMASK(14, 2)
#define GMAC_CTRL_2		0x2c08
#define  GMAC_INBAND		BIT(0)
#define  GMAC_RESET		BIT(6)
#define GMAC_AN			0x2c0c
#define  AN_FORCE_DOWN		BIT(0)
#define  AN_FORCE_PASS		BIT(1)
#define  AN_INBAND		BIT(2)
#define  AN_RESTART		BIT(4)
#define  AN_SPEED_100		BIT(5)
#define  AN_SPEED_1000		BIT(6)
#define GMAC_STATUS		0x2c10
#define  GMAC_LINK_UP		BIT(0)
#define  GMAC_SPEED_1000	BIT(1)
#define  GMAC_SPEED_100		BIT(2)
#define  GMAC_FULL_DUPLEX	BIT(3)
#define  GMAC_AN_COMPLETE	BIT(11)
#define  GMAC_SYNC_OK		BIT(14)
#define MIB			0x3000
#define  MIB_RX_OCTETS		0x00
#define  MIB_RX_FRAMES		0x10
#define  MIB_RX_BROADCAST	0x18
#define  MIB_RX_MULTICAST	0x1c
#define  MIB_SIZES		0x20
#define  MIB_TX_OCTETS		0x38
#define  MIB_TX_FRAMES		0x40
#define  MIB_TX_MULTICAST	0x48
#define  MIB_TX_BROADCAST	0x4c
#define  MIB_RX_OVERSIZE	0x68
#define  MIB_END		0x80
#define DA_SPECIAL		0x3400
#define DA_OTHER		0x3500
#define DA_UNICAST		0x3600
#define  DA_ACCEPT		BIT(0)
#define  DA_QUEUE		GENMASK(3, 1)
#define TXQ_BASE(q)		(0x3c00 + 4 * (q))
#define TXQ_SIZE(q)		(0x3c20 + 4 * (q))
#define  TXQ_DESC_NUM		GENMASK(13, 0)
#define  TXQ_SENT_THRESH	GENMASK(29, 16)
#define TXQ_STATUS(q)		(0x3c40 + 4 * (q))
#define TXQ_UPDATE(q)		(0x3c60 + 4 * (q))
#define  TXQ_ADD_PENDING	GENMASK(7, 0)
#define  TXQ_DEC_SENT		GENMASK(23, 16)
#define TX_RESET		0x3cf0
#define TX_CMD_1		0x3e00
#define  TX_BW_LEGACY		BIT(0)
#define  TX_EJP_ENABLE		BIT(2)
#define  TX_LEGACY_WRR		BIT(3)
#define TX_FIXED_PRIO		0x3e04
#define TX_REFILL_CLOCKS	0x3e08
#define TX_MTU			0x3e0c
#define  TX_MTU_BITS		GENMASK(17, 0)
#define TXQ_REFILL(q)		(0x3e20 + 4 * (q))
#define  TXQ_REFILL_TOKENS	GENMASK(18, 0)
#define  TXQ_REFILL_PERIOD	GENMASK(29, 20)
#define TXQ_TOKEN_SIZE(q)	(0x3e40 + 4 * (q))
#define TXQ_WRR(q)		(0x3e80 + 4 * (q))
#define  TXQ_WRR_WEIGHT		GENMASK(7, 0)
#define  TXQ_WRR_UNIT		256

/* first word of a transmit descriptor */
#define TD_L3_OFFSET		GENMASK(6, 0)
#define TD_IP_HLEN		GENMASK(12, 8)
#define TD_L4_UDP		BIT(16)
#define TD_L3_IP6		BIT(17)
#define TD_IP_CSUM		BIT(18)
#define TD_LAST			BIT(20)
#define TD_FIRST		BIT(21)
#define TD_BM			BIT(22)
#define TD_L4_CSUM_FULL		BIT(30)
#define TD_L4_CSUM_NOT		BIT(31)

/*
 * First word of a receive descriptor. Marvell's driver has the names of first
 * and last the other way round; mvneta receives frames in several buffers.
 */
#define RD_L3_OFFSET		GENMASK(6, 0)
#define RD_IP_HLEN		GENMASK(12, 8)
#define RD_VLAN			BIT(19)
#define RD_L4_TYPE		GENMASK(22, 21)
#define  RD_L4_UDP		1
#define  RD_L4_OTHER		2
#define RD_L3_TYPE		GENMASK(25, 24)
#define  RD_L3_IP6		2
#define  RD_L3_IP4		3
#define RD_LAST			BIT(26)
#define RD_FIRST		BIT(27)
#define RD_L4_CSUM_OK		BIT(30)
#define RD_IP4_FRAGMENT		BIT(31)

/* tags of DMA requests, the queue in the lowest bits */
#define TAG_TX_DESC		0x00
#define TAG_TX_DATA		0x10
#define TAG_TX_LAST		0x1f
#define TAG_RX_DESC		0x20
#define TAG_RX_DATA		0x30
#define TAG_RX_PART		0x40
#define TAG_RX_BACK		0x50
#define TAG_RX_LAST		0x5f

enum neta_timer {
	TIMER_TX_SENT,
	TIMER_TX_TOKENS,
	TIMER_TX_ROOM,
	TIMER_RX_TIME,
	TIMER_AN,
};

/* a descriptor in memory; transmit has a command, receive a status */
struct neta_desc {
	__le32 cmd;
	__le16 reserved;
	__le16 size;
	__le32 buf;
	__le32 rest[5];
};

/* a descriptor the port holds */
struct neta_held {
	u32 cmd;
	u32 size;
	u32 buf;
	dma_addr_t iova;
};

/* descriptors read ahead of their use, a ring of NETA_HELD */
struct neta_fetcher {
	struct neta_desc line[NETA_LINE];
	struct neta_held held[NETA_HELD];
	u32 head;		/* first not taken up */
	u32 tail;		/* where the next one read goes */
	u32 next;		/* its index in the driver's ring */
	u32 unread;		/* the driver's, not being read yet */
	u32 n;			/* descriptors of the read under way, or 0 */
};

struct neta_txq {
	struct neta_fetcher f;
	u32 lasts;		/* whole packets held */
	u32 pending;		/* descriptors of the driver's, not sent */
	u32 sent;		/* sent, not acknowledged */
	u32 deficit;		/* bytes it may still send in its turn */
	s64 tokens;		/* bits in its bucket */
	u64 refilled;		/* when that was true */
};

/* a packet in the TX FIFO, in order */
struct neta_seg {
	struct nicsim_frame *frame;	/* NULL: given up */
	u32 q;
	u32 cmd;
	u32 ndesc;
	u32 len;
	u32 pending;		/* reads under way */
	u64 left;		/* when its last bit has left */
};

struct neta_tx {
	struct neta_txq q[NETA_QUEUES];
	int picked;		/* queue whose turn it is, or -1 */
	u32 turn;		/* weighted queue last looked at */
	u32 fifo;		/* bytes occupied */
	u32 reads;		/* data reads under way */
	struct neta_seg seg[NETA_SEGS];
	u32 seg_sent;		/* oldest on the wire */
	u32 seg_ready;		/* oldest not complete */
	u32 seg_tail;		/* next to be used */
};

struct neta_rxq {
	struct neta_fetcher f;
	struct list_head fifo;	/* frames without a descriptor */
	struct list_head busy;	/* frames being written */
	u32 free;		/* descriptors for frames to come */
	u32 occupied;		/* with frames, not acknowledged */
	u64 due;		/* when the time set is over, or 0 */
	bool timed_out;
};

struct neta_rx {
	struct neta_rxq q[NETA_QUEUES];
	u32 bytes;		/* in the FIFO */
	u32 nbusy;
};

struct neta {
	u32 regs[NETA_REGS / 4];
	u32 mask[NETA_CPUS];
	u32 misc;		/* cause */
	u32 mbps;		/* as the driver sees it */
	bool an_done;
	u32 fifo_size;
	u32 csum_max;
	struct neta_tx tx;
	struct neta_rx rx;
};

static u32 *reg(struct neta *c, u32 off)
{
	return &c->regs[off / 4];
}

/* ---- interrupts ---- */

static u32 neta_cause(struct neta *c, unsigned int cpu)
{
	u32 map = *reg(c, CPU_MAP(cpu)), cause = 0;
	int q;

	for (q = 0; q < NETA_QUEUES; q++) {
		struct neta_txq *t = &c->tx.q[q];
		struct neta_rxq *r = &c->rx.q[q];
		u32 thresh;

		thresh = FIELD_GET(TXQ_SENT_THRESH, *reg(c, TXQ_SIZE(q)));
		if (t->sent > thresh)
			cause |= BIT(q);
		thresh = FIELD_GET(RXQ_OCCUPIED_THRESH,
				   *reg(c, RXQ_THRESHOLD(q)));
		if (r->occupied && (r->occupied >= thresh || r->timed_out))
			cause |= BIT(q + 8);
	}
	/* the map and the enables have receive queues first */
	map &= *reg(c, INTR_ENABLE);
	cause &= (map & 0xff) << 8 | (map >> 8 & 0xff);
	if (c->misc & *reg(c, INTR_MISC_MASK))
		cause |= INTR_MISC;
	return cause;
}

static void neta_irq_update(struct nicsim_port *port)
{
	struct neta *c = port->priv;
	bool level = false;
	int cpu;

	for (cpu = 0; cpu < NETA_CPUS; cpu++)
		if (c->mask[cpu])
			level |= neta_cause(c, cpu) & c->mask[cpu];
	nicsim_irq_set(port, level);
}

/* a CPU masks the queues that it has, and what belongs to no queue */
static void neta_mask(struct nicsim_port *port, unsigned int cpu, u32 val)
{
	struct neta *c = port->priv;
	u32 map = *reg(c, CPU_MAP(cpu)), mine;

	mine = (map & 0xff) << 8 | (map >> 8 & 0xff);
	mine |= ~(INTR_TX | INTR_RX);
	c->mask[cpu] = (c->mask[cpu] & ~mine) | (val & mine);
	neta_irq_update(port);
}

/* ---- link ---- */

static u32 gmac_mbps(struct neta *c)
{
	u32 an = *reg(c, GMAC_AN);

	if (an & AN_FORCE_DOWN || *reg(c, GMAC_CTRL_2) & GMAC_RESET)
		return 0;
	if (an & AN_FORCE_PASS)
		return an & AN_SPEED_1000 ? 1000 : an & AN_SPEED_100 ? 100 : 10;
	return c->an_done ? nicsim_wire_mbps() : 0;
}

/* frames pass: enabled, and at the speed that the PHY has */
static bool gmac_passes(struct neta *c)
{
	u32 mbps = nicsim_wire_mbps();

	return mbps && gmac_mbps(c) == mbps &&
	       *reg(c, GMAC_CTRL_0) & GMAC_ENABLE;
}

static void tx_work(struct nicsim_port *port);

static void gmac_update(struct nicsim_port *port, bool restart)
{
	struct neta *c = port->priv;
	bool inband = *reg(c, GMAC_AN) & AN_INBAND &&
		      *reg(c, GMAC_CTRL_2) & GMAC_INBAND &&
		      !(*reg(c, GMAC_AN) & AN_FORCE_DOWN);
	u32 mbps;

	if (!inband || !nicsim_wire_mbps() || restart) {
		nicsim_timer_cancel(port, TIMER_AN);
		c->an_done = false;
	}
	if (inband && nicsim_wire_mbps() && !c->an_done &&
	    !port->timers[TIMER_AN].ev.pending)
		nicsim_timer_set(port, TIMER_AN, NETA_AN_NS);

	mbps = gmac_mbps(c);
	if (c->mbps != mbps) {
		c->mbps = mbps;
		c->misc |= MISC_LINK_CHANGE;
		neta_irq_update(port);
	}
	tx_work(port);
}

static void neta_link_change(struct nicsim_port *port, u32 mbps)
{
	gmac_update(port, true);
}

static u32 gmac_status(struct neta *c)
{
	u32 mbps = gmac_mbps(c);

	if (!mbps)
		return 0;
	return GMAC_LINK_UP | GMAC_FULL_DUPLEX | GMAC_SYNC_OK |
	       (c->an_done ? GMAC_AN_COMPLETE : 0) |
	       (mbps == 1000 ? GMAC_SPEED_1000 : 0) |
	       (mbps == 100 ? GMAC_SPEED_100 : 0);
}

/* ---- counters ---- */

static void mib_add(struct neta *c, u32 off, u32 n)
{
	*reg(c, MIB + off) += n;
}

static void mib_frame(struct neta *c, const u8 *data, u32 len, bool tx)
{
	u32 *octets = reg(c, MIB + (tx ? MIB_TX_OCTETS : MIB_RX_OCTETS));
	u32 size = len + ETH_FCS_LEN;

	octets[0] += size;
	if (octets[0] < size)
		octets[1]++;
	mib_add(c, tx ? MIB_TX_FRAMES : MIB_RX_FRAMES, 1);
	if (is_broadcast_ether_addr(data))
		mib_add(c, tx ? MIB_TX_BROADCAST : MIB_RX_BROADCAST, 1);
	else if (is_multicast_ether_addr(data))
		mib_add(c, tx ? MIB_TX_MULTICAST : MIB_RX_MULTICAST, 1);
	/* 64, 65 to 127, 128 to 255, ..., 1024 and more; both ways */
	mib_add(c, MIB_SIZES + 4 * (size <= 64 ? 0 :
				    clamp(ilog2(size) - 5, 1, 5)), 1);
}

/* ---- descriptor fetch ---- */

static void neta_fetch(struct nicsim_port *port, bool tx, u32 q)
{
	struct neta *c = port->priv;
	struct neta_fetcher *f = tx ? &c->tx.q[q].f : &c->rx.q[q].f;
	u32 size, base;

	if (f->n || !f->unread || f->tail - f->head > NETA_HELD - NETA_LINE)
		return;
	base = *reg(c, tx ? TXQ_BASE(q) : RXQ_BASE(q));
	size = tx ? FIELD_GET(TXQ_DESC_NUM, *reg(c, TXQ_SIZE(q))) :
		    FIELD_GET(RXQ_DESC_NUM, *reg(c, RXQ_SIZE(q)));
	if (f->next >= size) {
		nicsim_error(port, "ring: size changed while in use");
		f->unread = 0;
		return;
	}
	f->n = min(f->unread, size - f->next);
	f->n = min(f->n, NETA_LINE);
	f->unread -= f->n;
	nicsim_dma_read(port, base + f->next * sizeof(f->line[0]), f->line,
			f->n * sizeof(f->line[0]),
			(tx ? TAG_TX_DESC : TAG_RX_DESC) + q, NULL);
}

static void neta_fetched(struct nicsim_port *port, bool tx, u32 q)
{
	struct neta *c = port->priv;
	struct neta_fetcher *f = tx ? &c->tx.q[q].f : &c->rx.q[q].f;
	u32 base = *reg(c, tx ? TXQ_BASE(q) : RXQ_BASE(q));
	u32 size = tx ? FIELD_GET(TXQ_DESC_NUM, *reg(c, TXQ_SIZE(q))) :
			FIELD_GET(RXQ_DESC_NUM, *reg(c, RXQ_SIZE(q)));
	u32 i;

	for (i = 0; i < f->n; i++) {
		struct neta_held *h = &f->held[f->tail++ % NETA_HELD];

		h->cmd = le32_to_cpu(f->line[i].cmd);
		h->size = le16_to_cpu(f->line[i].size);
		h->buf = le32_to_cpu(f->line[i].buf);
		h->iova = base + f->next * sizeof(f->line[0]);
		if (tx && h->cmd & TD_LAST)
			c->tx.q[q].lasts++;
		if (++f->next >= size)
			f->next = 0;
	}
	f->n = 0;
	neta_fetch(port, tx, q);
}

/* ---- transmit: which queue ---- */

/* the packet at the head of a queue */
static u32 txq_len(struct neta_txq *t)
{
	u32 i, len = 0;

	for (i = t->f.head; i != t->f.tail; i++) {
		struct neta_held *h = &t->f.held[i % NETA_HELD];

		len += h->size;
		if (h->cmd & TD_LAST)
			break;
	}
	return len;
}

static bool txq_overfull(struct neta_txq *t)
{
	return !t->lasts && !t->f.n &&
	       t->f.tail - t->f.head > NETA_HELD - NETA_LINE;
}

static bool tx_buckets(struct neta *c)
{
	return !(*reg(c, TX_CMD_1) & (TX_BW_LEGACY | TX_LEGACY_WRR));
}

static void tx_buckets_fill(struct neta *c)
{
	int q;

	for (q = 0; q < NETA_QUEUES; q++) {
		c->tx.q[q].tokens = *reg(c, TXQ_TOKEN_SIZE(q));
		c->tx.q[q].refilled = time_travel_now();
	}
}

/* ns until a queue's bucket lets a packet through; 0 is now */
static u64 txq_wait(struct nicsim_port *port, u32 q)
{
	struct neta *c = port->priv;
	struct neta_txq *t = &c->tx.q[q];
	u32 mtu = *reg(c, TX_MTU) & TX_MTU_BITS;
	u32 refill = *reg(c, TXQ_REFILL(q));
	u32 tokens = FIELD_GET(TXQ_REFILL_TOKENS, refill);
	u64 clk = port->ops == &nicsim_neta_xp ? 250 : 200;
	u64 period, clocks, n;

	if (!tx_buckets(c))
		return 0;
	if (*reg(c, TXQ_TOKEN_SIZE(q)) < mtu) {
		nicsim_error(port, "tx: bucket smaller than the MTU");
		return 0;
	}
	period = FIELD_GET(TXQ_REFILL_PERIOD, refill);
	clocks = *reg(c, TX_REFILL_CLOCKS) & 0xffff;
	period = max(period, 1) * max(clocks, 1) * 1000 / clk;
	n = (time_travel_now() - t->refilled) / period;
	t->refilled += n * period;
	t->tokens = min_t(s64, t->tokens + n * tokens,
			  *reg(c, TXQ_TOKEN_SIZE(q)));
	if (t->tokens >= mtu)
		return 0;
	if (!tokens)
		return U64_MAX;
	return t->refilled + DIV_ROUND_UP(mtu - t->tokens, tokens) * period -
	       time_travel_now();
}

static int tx_pick(struct nicsim_port *port)
{
	struct neta *c = port->priv;
	struct neta_tx *tx = &c->tx;
	u64 soonest = U64_MAX;
	u32 ready = 0, fixed;
	int q, i;

	for (q = 0; q < NETA_QUEUES; q++)
		if (*reg(c, TXQ_CMD) & BIT(q) &&
		    (tx->q[q].lasts || txq_overfull(&tx->q[q])))
			ready |= BIT(q);

	if (*reg(c, TX_CMD_1) & TX_LEGACY_WRR)
		return fls(ready) - 1;

	for (q = 0; q < NETA_QUEUES; q++) {
		u64 ns = ready & BIT(q) ? txq_wait(port, q) : 0;

		if (ns) {
			ready &= ~BIT(q);
			soonest = min(soonest, ns);
		}
	}
	if (soonest != U64_MAX)
		nicsim_timer_set(port, TIMER_TX_TOKENS, soonest);

	fixed = ready & *reg(c, TX_FIXED_PRIO);
	if (fixed)
		return fls(fixed) - 1;

	/* a weight lets at least one byte pass: as many turns as a frame has */
	for (i = 0; ready && i < NICSIM_FRAME_MAX * NETA_QUEUES; i++) {
		struct neta_txq *t = &tx->q[tx->turn];
		u32 weight;

		if (ready & BIT(tx->turn) && t->deficit >= txq_len(t)) {
			t->deficit -= txq_len(t);
			return tx->turn;
		}
		/* what is not used while there is nothing to send is lost */
		if (!(ready & BIT(tx->turn)))
			t->deficit = 0;
		tx->turn = (tx->turn + 1) % NETA_QUEUES;
		weight = FIELD_GET(TXQ_WRR_WEIGHT, *reg(c, TXQ_WRR(tx->turn)));
		if (ready & BIT(tx->turn))
			tx->q[tx->turn].deficit += weight * TXQ_WRR_UNIT;
	}
	return -1;
}

/* ---- transmit ---- */

/*
 * Give up a packet the port cannot send; what the real one would do is not
 * known. Its descriptors are sent in their turn.
 */
static const char *tx_check(struct neta *c, struct neta_txq *t, u32 *ndesc,
			    u32 *len)
{
	const char *bad = NULL;
	u32 i;

	*len = 0;
	*ndesc = t->f.tail - t->f.head;
	if (!t->lasts)
		return "tx: packet of too many descriptors";
	if (!(t->f.held[t->f.head % NETA_HELD].cmd & TD_FIRST))
		bad = "tx: packet without a first descriptor";
	for (i = t->f.head; ; i++) {
		struct neta_held *h = &t->f.held[i % NETA_HELD];

		if (!h->size)
			bad = "tx: zero-length descriptor";
		if (i != t->f.head && h->cmd & TD_FIRST)
			bad = "tx: first descriptor inside a packet";
		if (h->cmd & TD_BM)
			bad = "tx: buffer of a pool, and there is none";
		*len += h->size;
		if (h->cmd & TD_LAST)
			break;
	}
	*ndesc = i + 1 - t->f.head;
	if (!bad && *len < ETH_HLEN)
		bad = "tx: frame shorter than its header";
	if (!bad && *len > NICSIM_FRAME_MAX)
		bad = "tx: frame too long";
	return bad;
}

/* is there room for a packet? What has left of the oldest one is free. */
static bool tx_room(struct nicsim_port *port, u32 len)
{
	struct neta *c = port->priv;
	struct neta_tx *tx = &c->tx;
	u32 mbps = nicsim_wire_mbps();
	u32 used = tx->fifo;

	if (tx->seg_sent != tx->seg_ready) {
		struct neta_seg *s = &tx->seg[tx->seg_sent % NETA_SEGS];
		u64 now = time_travel_now();

		if (s->left > now)
			used -= s->len - min_t(u64, s->len,
					       (s->left - now) * mbps / 8000);
	}
	if (!used || used + len <= c->fifo_size)
		return true;
	nicsim_timer_set(port, TIMER_TX_ROOM,
			 (used + len - c->fifo_size) * 8000ULL / mbps + 1);
	return false;
}

/* bring the next packet into the FIFO, if there is one and room */
static bool tx_begin(struct nicsim_port *port)
{
	struct neta *c = port->priv;
	struct neta_tx *tx = &c->tx;
	struct neta_seg *s = &tx->seg[tx->seg_tail % NETA_SEGS];
	struct nicsim_frame *frame;
	u32 ndesc, len, to = 0, i;
	struct neta_txq *t;
	const char *bad;

	if (port->tx_hang || !gmac_passes(c))
		return false;
	if (*reg(c, TX_CMD_1) & TX_EJP_ENABLE)
		nicsim_error(port, "tx: EJP is not modelled");
	if (tx->picked < 0)
		tx->picked = tx_pick(port);
	if (tx->picked < 0)
		return false;

	t = &tx->q[tx->picked];
	bad = tx_check(c, t, &ndesc, &len);
	if (!bad && (tx->reads + ndesc > NETA_READS || !tx_room(port, len)))
		return false;
	frame = bad ? NULL : nicsim_frame_alloc();
	if (!bad && !frame) {
		nicsim_error(port, "nicsim: out of frame buffers");
		return false;
	}
	if (bad)
		nicsim_error(port, bad);

	memset(s, 0, sizeof(*s));
	s->frame = frame;
	s->q = tx->picked;
	s->cmd = t->f.held[t->f.head % NETA_HELD].cmd;
	s->ndesc = ndesc;
	s->len = bad ? 0 : len;
	tx->fifo += s->len;
	tx->seg_tail++;
	for (i = 0; i < ndesc; i++) {
		struct neta_held *h = &t->f.held[t->f.head++ % NETA_HELD];

		if (!bad && nicsim_dma_read(port, h->buf, frame->data + to,
					    h->size, TAG_TX_DATA, s)) {
			s->pending++;
			tx->reads++;
		}
		to += h->size;
	}
	if (t->lasts)
		t->lasts--;
	if (tx_buckets(c))
		t->tokens -= 8LL * s->len;
	if (!(*reg(c, TX_CMD_1) & TX_LEGACY_WRR) &&
	    !(*reg(c, TX_FIXED_PRIO) & BIT(s->q)) &&
	    8 * TXQ_WRR_UNIT * FIELD_GET(TXQ_WRR_WEIGHT, *reg(c, TXQ_WRR(s->q)))
	    <= (*reg(c, TX_MTU) & TX_MTU_BITS))
		nicsim_error(port, "tx: weight of a queue below the MTU");
	tx->picked = -1;
	neta_fetch(port, true, s->q);
	return true;
}

/* a packet is in the FIFO: insert what the driver left to the port */
static const char *tx_finish(struct neta *c, struct neta_seg *s)
{
	u32 l3 = FIELD_GET(TD_L3_OFFSET, s->cmd);
	u32 l4 = l3 + 4 * FIELD_GET(TD_IP_HLEN, s->cmd);
	u8 *data = s->frame->data;
	struct nicsim_l4 l;

	s->frame->len = s->len;
	if (s->cmd & TD_L4_CSUM_NOT && !(s->cmd & TD_IP_CSUM))
		return NULL;
	if (s->len > c->csum_max)
		return "tx: checksum request for a frame that is too long";
	if (!nicsim_parse(data, s->len, &l) || l.l3 != l3)
		return "tx: checksum request with a bad network offset";
	if (s->cmd & TD_L4_CSUM_NOT) {
		struct iphdr *ip = (void *)data + l3;

		if (l.v6 || l.l4 != l4)
			return "tx: checksum request with a bad IP header";
		ip->check = 0;
		ip->check = ip_fast_csum(ip, ip->ihl);
		return NULL;
	}
	if (!(s->cmd & TD_L4_CSUM_FULL))
		return "tx: partial checksum request, which is not modelled";
	return nicsim_tx_csum(data, s->len, l4, s->cmd & TD_L3_IP6,
			      s->cmd & TD_L4_UDP ? IPPROTO_UDP : IPPROTO_TCP);
}

/* packets whose bytes are all there go to the wire, in order */
static void tx_complete(struct nicsim_port *port)
{
	struct neta *c = port->priv;
	struct neta_tx *tx = &c->tx;

	while (tx->seg_ready != tx->seg_tail) {
		struct neta_seg *s = &tx->seg[tx->seg_ready % NETA_SEGS];

		if (s->pending)
			break;
		s->left = time_travel_now();
		if (s->frame) {
			const char *bad = tx_finish(c, s);

			if (bad)
				nicsim_error(port, bad);
			mib_frame(c, s->frame->data,
				  max_t(u32, s->len, ETH_ZLEN), true);
			s->left = nicsim_wire_send(port, s->frame);
		}
		if (tx->seg_ready++ == tx->seg_sent)
			nicsim_timer_set_at(port, TIMER_TX_SENT, s->left);
	}
}

static void tx_work(struct nicsim_port *port)
{
	struct neta_tx *tx = &((struct neta *)port->priv)->tx;

	while (tx->seg_tail - tx->seg_sent < NETA_SEGS)
		if (!tx_begin(port))
			break;
	tx_complete(port);
}

/* the last bit of a packet has left */
static void tx_sent(struct nicsim_port *port)
{
	struct neta_tx *tx = &((struct neta *)port->priv)->tx;

	while (tx->seg_sent != tx->seg_ready) {
		struct neta_seg *s = &tx->seg[tx->seg_sent % NETA_SEGS];

		if (s->left > time_travel_now()) {
			nicsim_timer_set_at(port, TIMER_TX_SENT, s->left);
			break;
		}
		tx->fifo -= s->len;
		tx->q[s->q].pending -= s->ndesc;
		tx->q[s->q].sent += s->ndesc;
		tx->seg_sent++;
	}
	neta_irq_update(port);
	tx_work(port);
}

static void txq_update(struct nicsim_port *port, u32 q, u32 val)
{
	struct neta *c = port->priv;
	struct neta_txq *t = &c->tx.q[q];
	u32 add = FIELD_GET(TXQ_ADD_PENDING, val);
	u32 dec = FIELD_GET(TXQ_DEC_SENT, val);

	if (dec > t->sent) {
		nicsim_error(port, "tx: more acknowledged than sent");
		dec = t->sent;
	}
	t->sent -= dec;
	if (t->pending + t->sent + add >
	    FIELD_GET(TXQ_DESC_NUM, *reg(c, TXQ_SIZE(q)))) {
		nicsim_error(port, "tx: more descriptors than the ring has");
		add = 0;
	}
	t->pending += add;
	t->f.unread += add;
	if (dec)
		neta_irq_update(port);
	if (add) {
		neta_fetch(port, true, q);
		tx_work(port);
	}
}

static void tx_reset(struct nicsim_port *port)
{
	struct neta *c = port->priv;
	struct neta_tx *tx = &c->tx;

	nicsim_timer_cancel(port, TIMER_TX_SENT);
	nicsim_timer_cancel(port, TIMER_TX_TOKENS);
	nicsim_timer_cancel(port, TIMER_TX_ROOM);
	nicsim_dma_cancel(port, TAG_TX_DESC, TAG_TX_LAST);
	/* what is on the wire is gone; what is in the FIFO is lost */
	for (; tx->seg_ready != tx->seg_tail; tx->seg_ready++)
		nicsim_frame_free(tx->seg[tx->seg_ready % NETA_SEGS].frame);
	memset(tx, 0, sizeof(*tx));
	tx->picked = -1;
	tx_buckets_fill(c);
	port->tx_hang = 0;
	neta_irq_update(port);
}

/* ---- receive ---- */

static void rx_timer(struct nicsim_port *port)
{
	struct neta_rx *rx = &((struct neta *)port->priv)->rx;
	u64 due = U64_MAX;
	int q;

	for (q = 0; q < NETA_QUEUES; q++)
		if (rx->q[q].due)
			due = min(due, rx->q[q].due);
	if (due == U64_MAX)
		nicsim_timer_cancel(port, TIMER_RX_TIME);
	else
		nicsim_timer_set_at(port, TIMER_RX_TIME, due);
}

/* frames wait for the driver from now on, or none does any more */
static void rx_time_start(struct nicsim_port *port, u32 q)
{
	struct neta *c = port->priv;
	struct neta_rxq *r = &c->rx.q[q];
	u64 clk = port->ops == &nicsim_neta_xp ? 250 : 200;

	r->timed_out = false;
	r->due = 0;
	if (r->occupied)
		r->due = time_travel_now() + *reg(c, RXQ_TIME(q)) * 1000ULL /
			 clk;
	rx_timer(port);
}

static void rx_time_over(struct nicsim_port *port)
{
	struct neta_rx *rx = &((struct neta *)port->priv)->rx;
	int q;

	for (q = 0; q < NETA_QUEUES; q++) {
		if (rx->q[q].due && rx->q[q].due <= time_travel_now()) {
			rx->q[q].due = 0;
			rx->q[q].timed_out = true;
		}
	}
	rx_timer(port);
	neta_irq_update(port);
}

static u32 da_table(struct neta *c, u32 table, u32 entry)
{
	return *reg(c, table + entry) >> (8 * (entry % 4)) & 0xff;
}

static u8 da_crc8(const u8 *addr)
{
	u8 crc = 0;
	int i, bit;

	for (i = 0; i < ETH_ALEN; i++) {
		crc ^= addr[i];
		for (bit = 0; bit < 8; bit++)
			crc = crc << 1 ^ (crc & 0x80 ? 0x07 : 0);
	}
	return crc;
}

/* the queue of a frame, or -1 when it does not pass the filter */
static int rx_queue(struct neta *c, const u8 *data)
{
	static const u8 special[] = { 0x01, 0x00, 0x5e, 0x00, 0x00 };
	u32 conf = *reg(c, PORT_CONFIG), entry, q;
	u16 type = get_unaligned_be16(data + 2 * ETH_ALEN);
	u8 mac[ETH_ALEN];

	put_unaligned_be32(*reg(c, MAC_ADDR_HIGH), mac);
	put_unaligned_be16(*reg(c, MAC_ADDR_LOW), mac + 4);

	if (is_broadcast_ether_addr(data)) {
		entry = DA_ACCEPT;
		q = FIELD_GET(DEF_RXQ, conf);
		if (type == ETH_P_ARP)
			q = FIELD_GET(DEF_RXQ_ARP, conf);
	} else if (is_multicast_ether_addr(data)) {
		if (!memcmp(data, special, sizeof(special)))
			entry = da_table(c, DA_SPECIAL, data[5]);
		else
			entry = da_table(c, DA_OTHER, da_crc8(data));
		q = FIELD_GET(DA_QUEUE, entry);
	} else {
		/* all but the last four bits; those look up the table */
		entry = da_table(c, DA_UNICAST, data[5] & 0xf);
		q = FIELD_GET(DA_QUEUE, entry);
		if (memcmp(data, mac, 5) || (data[5] ^ mac[5]) & 0xf0)
			entry = 0;
		if (conf & UNI_PROMISC)
			entry |= DA_ACCEPT;
	}
	if (!(entry & DA_ACCEPT))
		return -1;
	if (type == ETH_P_8021Q) {
		u32 prio = data[2 * ETH_ALEN + 2] >> 5;

		q = max(q, *reg(c, VLAN_PRIO_TO_RXQ) >> (3 * prio) & 7);
	}
	return q;
}

static u32 rx_status(struct nicsim_frame *f)
{
	u32 status = FIELD_PREP(RD_L4_TYPE, RD_L4_OTHER);
	struct nicsim_l4 l;

	if (get_unaligned_be16(f->data + 2 * ETH_ALEN) == ETH_P_8021Q)
		status |= RD_VLAN;
	if (!nicsim_parse(f->data, f->len, &l))
		return status;

	status |= FIELD_PREP(RD_L3_OFFSET, l.l3 + NETA_MH);
	status |= FIELD_PREP(RD_IP_HLEN, (l.l4 - l.l3) / 4);
	if (l.v6) {
		status |= FIELD_PREP(RD_L3_TYPE, RD_L3_IP6);
	} else {
		const struct iphdr *ip = (const void *)f->data + l.l3;

		if (!ip_fast_csum(ip, ip->ihl))
			status |= FIELD_PREP(RD_L3_TYPE, RD_L3_IP4);
		if (ip->frag_off & htons(0x3fff))
			status |= RD_IP4_FRAGMENT;
	}
	if (l.proto == IPPROTO_TCP || l.proto == IPPROTO_UDP) {
		status &= ~RD_L4_TYPE;
		if (l.proto == IPPROTO_UDP)
			status |= FIELD_PREP(RD_L4_TYPE, RD_L4_UDP);
		if (nicsim_rx_csum_ok(f->data, f->len, &l))
			status |= RD_L4_CSUM_OK;
	}
	return status;
}

static void rx_write(struct nicsim_port *port, u32 q, struct nicsim_frame *f)
{
	struct neta *c = port->priv;
	struct neta_rxq *r = &c->rx.q[q];
	u32 buf_size = FIELD_GET(RXQ_BUF_SIZE, *reg(c, RXQ_SIZE(q))) * 8;
	u32 offset = FIELD_GET(RXQ_PKT_OFFSET, *reg(c, RXQ_CONFIG(q))) * 8;
	u32 status = rx_status(f);
	u32 pos;

	/* Marvell header and FCS are zeroes: the latter is not carried */
	memmove(f->data + NETA_MH, f->data, f->len);
	memset(f->data, 0, NETA_MH);
	memset(f->data + NETA_MH + f->len, 0, ETH_FCS_LEN);
	f->len += NETA_MH + ETH_FCS_LEN;

	for (pos = 0; pos < f->len; pos += buf_size) {
		struct neta_held *h = &r->f.held[r->f.head++ % NETA_HELD];
		bool last = pos + buf_size >= f->len;
		struct neta_desc d = {
			.cmd = cpu_to_le32(status | (pos ? 0 : RD_FIRST) |
					   (last ? RD_LAST : 0)),
			.size = cpu_to_le16(f->len),
		};

		if (!h->buf)
			nicsim_error(port, "rx: descriptor without a buffer");
		nicsim_dma_write(port, h->buf + offset, f->data + pos,
				 min(buf_size, f->len - pos), TAG_RX_DATA,
				 NULL);
		nicsim_dma_write(port, h->iova, &d,
				 offsetof(struct neta_desc, buf),
				 (last ? TAG_RX_BACK : TAG_RX_PART) + q, f);
		r->free--;
	}
}

static void rx_drop(struct neta *c, struct nicsim_frame *f)
{
	c->rx.bytes -= f->room;
	list_del(&f->list);
	nicsim_frame_free(f);
}

static void rx_work(struct nicsim_port *port, u32 q)
{
	struct neta *c = port->priv;
	struct neta_rxq *r = &c->rx.q[q];
	u32 buf_size = FIELD_GET(RXQ_BUF_SIZE, *reg(c, RXQ_SIZE(q))) * 8;

	while (!list_empty(&r->fifo) && c->rx.nbusy < NETA_RX_BUSY) {
		struct nicsim_frame *f = list_first_entry(&r->fifo,
							  struct nicsim_frame,
							  list);
		u32 need;

		if (!buf_size || *reg(c, RXQ_CONFIG(q)) & RXQ_HW_BUF_ALLOC) {
			nicsim_error(port, "rx: no buffer size, or a pool");
			rx_drop(c, f);
			continue;
		}
		need = DIV_ROUND_UP(f->len + NETA_MH + ETH_FCS_LEN, buf_size);
		if (need > r->free) {
			*reg(c, RX_DISCARD) += 1;
			rx_drop(c, f);
			continue;
		}
		if (need > r->f.tail - r->f.head)
			break;
		list_move_tail(&f->list, &r->busy);
		c->rx.nbusy++;
		rx_write(port, q, f);
	}
	neta_fetch(port, false, q);
}

static void neta_rx_frame(struct nicsim_port *port, struct nicsim_frame *f)
{
	struct neta *c = port->priv;
	int q;

	if (!gmac_passes(c))
		goto drop;
	if (f->len + ETH_FCS_LEN >
	    2 * FIELD_GET(GMAC_MAX_RX_SIZE, *reg(c, GMAC_CTRL_0))) {
		mib_add(c, MIB_RX_OVERSIZE, 1);
		goto drop;
	}
	mib_frame(c, f->data, f->len, false);
	q = rx_queue(c, f->data);
	if (q < 0)
		goto drop;
	if (!(*reg(c, RXQ_CMD) & BIT(q))) {
		*reg(c, RX_DISCARD) += 1;
		goto drop;
	}
	if (c->rx.bytes + f->len > NETA_RX_FIFO) {
		*reg(c, RX_OVERRUN) += 1;
		goto drop;
	}
	c->rx.bytes += f->len;
	f->room = f->len;
	list_add_tail(&f->list, &c->rx.q[q].fifo);
	rx_work(port, q);
	return;
drop:
	nicsim_frame_free(f);
}

static void rx_done(struct nicsim_port *port, u32 q, struct nicsim_frame *f)
{
	struct neta *c = port->priv;
	struct neta_rxq *r = &c->rx.q[q];
	u32 buf_size = FIELD_GET(RXQ_BUF_SIZE, *reg(c, RXQ_SIZE(q))) * 8;
	bool first = !r->occupied;

	r->occupied += DIV_ROUND_UP(f->len, buf_size);
	c->rx.nbusy--;
	rx_drop(c, f);
	if (first)
		rx_time_start(port, q);
	neta_irq_update(port);
	rx_work(port, q);
}

static void rxq_update(struct nicsim_port *port, u32 q, u32 val)
{
	struct neta *c = port->priv;
	struct neta_rxq *r = &c->rx.q[q];
	u32 add = FIELD_GET(RXQ_ADD_FREE, val);
	u32 dec = FIELD_GET(RXQ_DEC_OCCUPIED, val);

	if (dec > r->occupied) {
		nicsim_error(port, "rx: more acknowledged than received");
		dec = r->occupied;
	}
	r->occupied -= dec;
	if (r->occupied + r->free + add >
	    FIELD_GET(RXQ_DESC_NUM, *reg(c, RXQ_SIZE(q)))) {
		nicsim_error(port, "rx: more descriptors than the ring has");
		add = 0;
	}
	r->free += add;
	r->f.unread += add;
	if (dec) {
		rx_time_start(port, q);
		neta_irq_update(port);
	}
	rx_work(port, q);
}

static void rx_clear(struct neta *c)
{
	int q;

	memset(&c->rx, 0, sizeof(c->rx));
	for (q = 0; q < NETA_QUEUES; q++) {
		INIT_LIST_HEAD(&c->rx.q[q].fifo);
		INIT_LIST_HEAD(&c->rx.q[q].busy);
	}
}

static void rx_reset(struct nicsim_port *port)
{
	struct neta *c = port->priv;
	int q;

	nicsim_timer_cancel(port, TIMER_RX_TIME);
	nicsim_dma_cancel(port, TAG_RX_DESC, TAG_RX_LAST);
	for (q = 0; q < NETA_QUEUES; q++) {
		struct neta_rxq *r = &c->rx.q[q];

		list_splice_init(&r->busy, &r->fifo);
		while (!list_empty(&r->fifo))
			rx_drop(c, list_first_entry(&r->fifo,
						    struct nicsim_frame, list));
	}
	rx_clear(c);
	neta_irq_update(port);
}

/* ---- events ---- */

static void neta_dma_done(struct nicsim_port *port, u32 tag, void *ctx)
{
	struct neta_tx *tx = &((struct neta *)port->priv)->tx;
	struct neta_seg *s = ctx;
	u32 q = tag & 0xf;

	switch (tag & ~0xf) {
	case TAG_TX_DESC:
		neta_fetched(port, true, q);
		tx_work(port);
		break;
	case TAG_TX_DATA:
		tx->reads--;
		if (!--s->pending)
			tx_work(port);
		break;
	case TAG_RX_DESC:
		neta_fetched(port, false, q);
		rx_work(port, q);
		break;
	case TAG_RX_BACK:
		rx_done(port, q, ctx);
		break;
	}
}

static void neta_timer_due(struct nicsim_port *port, unsigned int id)
{
	struct neta *c = port->priv;

	switch (id) {
	case TIMER_TX_SENT:
		tx_sent(port);
		break;
	case TIMER_TX_TOKENS:
	case TIMER_TX_ROOM:
		tx_work(port);
		break;
	case TIMER_RX_TIME:
		rx_time_over(port);
		break;
	case TIMER_AN:
		c->an_done = true;
		gmac_update(port, false);
		break;
	}
}

/* ---- registers ---- */

static u32 neta_reg_read(struct nicsim_port *port, u32 off, int size)
{
	unsigned int cpu = raw_smp_processor_id();
	struct neta *c = port->priv;
	u32 q = off / 4 % NETA_QUEUES, val;

	if (size != 4 || off % 4) {
		nicsim_error(port, "mmio: access other than of 32 bits");
		return U32_MAX;
	}

	switch (off) {
	case RXQ_STATUS(0) ... RXQ_STATUS(7):
		return c->rx.q[q].free << 16 | c->rx.q[q].occupied;
	case TXQ_STATUS(0) ... TXQ_STATUS(7):
		return c->tx.q[q].sent << 16 | c->tx.q[q].pending;
	case PORT_STATUS:
		return c->tx.seg_sent == c->tx.seg_tail ? TX_FIFO_EMPTY :
							  TX_IN_PROGRESS;
	case INTR_NEW_CAUSE:
		return neta_cause(c, cpu);
	case INTR_NEW_MASK:
		return c->mask[cpu];
	case INTR_MISC_CAUSE:
		return c->misc;
	case GMAC_STATUS:
		return gmac_status(c);
	case RX_DISCARD:
	case RX_OVERRUN:
	case MIB ... MIB + MIB_END - 4:
		val = *reg(c, off);
		*reg(c, off) = 0;
		return val;
	}
	return *reg(c, off);
}

static void neta_reg_write(struct nicsim_port *port, u32 off, int size,
			   u32 val)
{
	unsigned int cpu = raw_smp_processor_id();
	struct neta *c = port->priv;
	u32 q = off / 4 % NETA_QUEUES;
	u32 old;

	if (size != 4 || off % 4) {
		nicsim_error(port, "mmio: access other than of 32 bits");
		return;
	}

	/* what is not simply stored */
	switch (off) {
	case RXQ_UPDATE(0) ... RXQ_UPDATE(7):
		rxq_update(port, q, val);
		return;
	case TXQ_UPDATE(0) ... TXQ_UPDATE(7):
		txq_update(port, q, val);
		return;
	case RXQ_CMD:
	case TXQ_CMD:
		*reg(c, off) |= val & 0xff;
		*reg(c, off) &= ~(val >> 8) & 0xff;
		tx_work(port);
		return;
	case INTR_NEW_MASK:
		neta_mask(port, cpu, val);
		return;
	case INTR_MISC_CAUSE:
		c->misc &= val;
		neta_irq_update(port);
		return;
	case INTR_NEW_CAUSE:
	case PORT_STATUS:
	case GMAC_STATUS:
	case RXQ_STATUS(0) ... RXQ_STATUS(7):
	case TXQ_STATUS(0) ... TXQ_STATUS(7):
		return;
	}

	old = *reg(c, off);
	*reg(c, off) = val;
	switch (off) {
	case TXQ_BASE(0) ... TXQ_BASE(7):
		if (c->tx.q[q].pending && old != val)
			nicsim_error(port, "tx: ring moved while in use");
		break;
	case RXQ_BASE(0) ... RXQ_BASE(7):
		if (c->rx.q[q].free && old != val)
			nicsim_error(port, "rx: ring moved while in use");
		break;
	case TXQ_SIZE(0) ... TXQ_SIZE(7):
		if (val & ~(TXQ_DESC_NUM | TXQ_SENT_THRESH))
			nicsim_error(port, "tx: threshold outside its field");
		neta_irq_update(port);
		break;
	case RXQ_THRESHOLD(0) ... RXQ_THRESHOLD(7):
	case CPU_MAP(0) ... CPU_MAP(NETA_CPUS - 1):
	case INTR_MISC_MASK:
	case INTR_ENABLE:
		neta_irq_update(port);
		break;
	case RX_RESET:
		if (val & DMA_RESET)
			rx_reset(port);
		break;
	case TX_RESET:
		if (val & DMA_RESET)
			tx_reset(port);
		break;
	case GMAC_CTRL_0:
	case GMAC_CTRL_2:
	case GMAC_AN:
		gmac_update(port, off == GMAC_AN && val & ~old & AN_RESTART);
		break;
	case TX_CMD_1:
		if (old != val)
			tx_buckets_fill(c);
		tx_work(port);
		break;
	case TX_FIXED_PRIO:
	case TXQ_REFILL(0) ... TXQ_REFILL(7):
	case TXQ_TOKEN_SIZE(0) ... TXQ_TOKEN_SIZE(7):
	case TXQ_WRR(0) ... TXQ_WRR(7):
		tx_work(port);
		break;
	}
}

/*
 * What the arbiter does at power-on is not known. "legacy": as mvneta of the
 * day leaves it, strict priority by number whatever TQFPC says, which is what
 * a public report of four flows on four queues looks like; buckets without a
 * refill, since Marvell's driver sets one. "fixed": the same by TQFPC. "wrr":
 * all queues share, by the largest weight. In the latter two the buckets do not
 * limit, or mvneta would not work.
 */
static int neta_power_on(struct neta *c)
{
	bool wrr = !strcmp(neta_arb, "wrr");
	int q;

	*reg(c, TX_REFILL_CLOCKS) = 16;
	if (!strcmp(neta_arb, "legacy")) {
		*reg(c, TX_CMD_1) = TX_LEGACY_WRR | TX_BW_LEGACY;
		*reg(c, TX_FIXED_PRIO) = 0xff;
		return 0;
	}
	if (!wrr && strcmp(neta_arb, "fixed"))
		return -EINVAL;
	*reg(c, TX_FIXED_PRIO) = wrr ? 0 : 0xff;
	for (q = 0; q < NETA_QUEUES; q++) {
		*reg(c, TXQ_WRR(q)) = wrr ? TXQ_WRR_WEIGHT : 0;
		*reg(c, TXQ_REFILL(q)) = TXQ_REFILL_TOKENS |
					 FIELD_PREP(TXQ_REFILL_PERIOD, 1);
		*reg(c, TXQ_TOKEN_SIZE(q)) = S32_MAX;
	}
	return 0;
}

static int neta_init(struct nicsim_port *port)
{
	struct neta *c = port->priv;
	int err;

	err = neta_power_on(c);
	if (err)
		return err;
	c->csum_max = port->ops == &nicsim_neta_370 ? 2048 : 9800;
	c->fifo_size = c->csum_max;
	/* an address of Marvell's, and the port's number */
	*reg(c, MAC_ADDR_HIGH) = 0x00504311;
	*reg(c, MAC_ADDR_LOW) = 0x6800 | (port->index + 1);
	rx_clear(c);
	tx_reset(port);
	nicsim_wire_advertise(port, NICSIM_SPEED_ALL);
	return 0;
}

#define NETA_OPS						\
	.bus			= &nicsim_platform_bus,		\
	.bar_size		= NETA_REGS,			\
	.priv_size		= sizeof(struct neta),		\
	.sw_tso			= true,				\
	.dma_req_max		= 128,				\
	.dma_outstanding	= 4,				\
	.init			= neta_init,			\
	.reg_read		= neta_reg_read,		\
	.reg_write		= neta_reg_write,		\
	.dma_done		= neta_dma_done,		\
	.rx_frame		= neta_rx_frame,		\
	.timer			= neta_timer_due,		\
	.link_change		= neta_link_change

const struct nicsim_ops nicsim_neta = {
	.name			= "neta",
	.dtbo			= __dtbo_neta_begin,
	.dtbo_end		= __dtbo_neta_end,
	NETA_OPS,
};

const struct nicsim_ops nicsim_neta_xp = {
	.name			= "neta-xp",
	.dtbo			= __dtbo_neta_xp_begin,
	.dtbo_end		= __dtbo_neta_xp_end,
	.percpu_irq		= true,
	NETA_OPS,
};

const struct nicsim_ops nicsim_neta_370 = {
	.name			= "neta-370",
	.dtbo			= __dtbo_neta_370_begin,
	.dtbo_end		= __dtbo_neta_370_end,
	.percpu_irq		= true,
	NETA_OPS,
};
