// SPDX-License-Identifier: GPL-2.0
/*
 * nicsim: Realtek's PCIe Gigabit Ethernet controllers with their PHY, five
 * generations whose way of transmitting differs:
 *
 *	rtl8168b	RTL8168B	XID 380	RTL_GIGA_MAC_VER_17
 *	rtl8168c	RTL8168C	XID 3c4	RTL_GIGA_MAC_VER_22
 *	rtl8168evl	RTL8168E-VL	XID 2c8	RTL_GIGA_MAC_VER_34
 *	rtl8168h	RTL8168H	XID 541	RTL_GIGA_MAC_VER_46
 *	rtl8125b	RTL8125B	XID 641	RTL_GIGA_MAC_VER_63
 *
 * struct rtl_chip says what a generation has; the tables are at the end.
 *
 * No register manual of these parts is public. Sources, by what they told:
 *	registers, descriptors, longest frames, and what a generation cannot do
 *	(pads, pads_ptp, tso_plain): drivers/net/ethernet/realtek/r8169_main.c.
 *	It keeps from the chip what that cannot do; here such a frame is an
 *	error, so a driver that lets it pass is found out
 *	the same of the ancestor: RTL8169 manual, revision 1.21
 *	XID 3c4, one of those that r8169 takes for VER_22: FreeBSD's
 *	RL_HWREV_8168C_SPIN2
 *	PHYs: drivers/net/phy/realtek
 *	INT_MITI, the table of timers of the RTL8125: Realtek's r8125 driver
 * Postulated, since no source says:
 *	four descriptors a fetch (what the vendor's driver writes to a register
 *	it calls TDFNR); TX FIFO of 8 KiB (the RTL8169's; 32 KiB in the RTL8125
 *	so that two of its largest frames fit), RX FIFO of 48 KiB;
 *	two outstanding reads; the mitigation timer starts with the first event
 *	after the last interrupt; a receiver without a free descriptor looks
 *	again with each frame, and after 5 us without one;
 *	the PHY of the RTL8168B and C is an RTL8211B, that of the E-VL an
 *	RTL8211E; the RTL8125B's PCIe is of the second generation;
 *	INT_MITI: entry 0 is that of the only queues, its low bytes count units
 *	of 2.048 us for RX and TX whatever the speed of the link (r8125 divides
 *	its count for a timer that counts 8 ns in the RTL8168 by 256), it acts
 *	on the plain interrupt status too, and a reset clears it;
 *	octets in the tally of the RTL8125 are without FCS;
 *	tso_loses: r8169's history has that the RTL8168C (VER_22) is slow beyond
 *	use with TSO, not why. Here its engine ruins the FCS of the last segment
 *	of a large send, so that each one costs a retransmission, and how fast
 *	that is follows from TCP.
 *
 * TX: a write to TxPoll makes an idle fetcher read descriptors, up to the end
 * of a 64-byte line, until it meets one it does not own; that one is not read
 * again without another TxPoll. Whole packets are read into the FIFO segment
 * by segment, checksummed there, and sent; a frame is sent when all of it is
 * there, so two jumbo frames that do not fit together are sent with a pause
 * between them. The descriptors of a packet are given back when its last bit
 * has left, with TxOK.
 *
 * RX: frames that pass the filter wait in the FIFO for a descriptor, are
 * written with four bytes where the FCS would be (zero, it is not carried),
 * then the descriptor, then RxOK.
 *
 * Not modelled: that the real chips seem to give back all but the last
 * descriptor of a packet earlier, and that they lose requests by TxPoll that
 * come too close, as a comment in r8169 has it; high priority queue, further
 * queues, the RTL8125's own descriptor format and interrupt status, wake-up,
 * EEE, ASPM, firmware, pause frames, receive errors, half duplex, MSI-X, I/O
 * ports.
 */
#include <linux/bitfield.h>
#include <linux/crc32.h>
#include <linux/etherdevice.h>
#include <linux/if_vlan.h>
#include <linux/ip.h>
#include <linux/mii.h>
#include <linux/sizes.h>
#include <linux/tcp.h>
#include <linux/udp.h>
#include <linux/unaligned.h>
#include "nicsim.h"

#define RTL_REGS		256
#define RTL_REGS_8125		65536
#define RTL_LINE		4		/* descriptors a fetch */
#define RTL_CACHE		64		/* descriptors the chip holds */
#define RTL_RX_RETRY_NS		5000
#define RTL_TSO_HDR		192		/* bytes read for the headers */

/* registers */
#define MAC0			0x00
#define MAR0			0x08
#define COUNTER_LO		0x10
#define  COUNTER_DUMP		BIT(3)
#define  COUNTER_RESET		BIT(0)
#define COUNTER_HI		0x14
#define TX_DESC_LO		0x20
#define TX_DESC_HI		0x24
#define CHIP_CMD		0x37
#define  CMD_RESET		BIT(4)
#define  CMD_RX_ENB		BIT(3)
#define  CMD_TX_ENB		BIT(2)
#define TX_POLL			0x38
#define  TX_POLL_NPQ		BIT(6)
#define INTR_MASK		0x3c
#define INTR_STATUS		0x3e
#define INT_CFG0_8125		0x34
#define  INT_CFG0_BYPASS	GENMASK(2, 1)
#define INTR_MASK_8125		0x38
#define INTR_STATUS_8125	0x3c
#define  INTR_LINK_CHG		BIT(5)
#define  INTR_RX_UNAVAIL	BIT(4)
#define  INTR_TX_OK		BIT(2)
#define  INTR_RX_OK		BIT(0)
#define TX_CONFIG		0x40
#define  TX_CONFIG_EMPTY	BIT(11)
#define  TX_CONFIG_WRITABLE	0x030fffff
#define RX_CONFIG		0x44
#define  RX_VLAN_8125		GENMASK(23, 22)
#define  RX_ACCEPT_BROADCAST	BIT(3)
#define  RX_ACCEPT_MULTICAST	BIT(2)
#define  RX_ACCEPT_MY_PHYS	BIT(1)
#define  RX_ACCEPT_ALL_PHYS	BIT(0)
#define CONFIG3			0x54
#define  JUMBO_EN0		BIT(2)
#define CONFIG4			0x55
#define  JUMBO_EN1		BIT(1)
#define  JUMBO_8168B		BIT(0)
#define PHYAR			0x60
#define CSIDR			0x64
#define CSIAR			0x68
#define PHY_STATUS		0x6c
#define ERIDR			0x70
#define ERIAR			0x74
#define EPHYAR			0x80
#define TX_POLL_8125		0x90
#define  TX_POLL_NPQ_8125	BIT(0)
#define OCPDR			0xb0
#define GPHY_OCP		0xb8
#define  CMD_FLAG		BIT(31)
#define MCU			0xd3
#define  MCU_TX_EMPTY		BIT(5)
#define  MCU_RX_EMPTY		BIT(4)
#define  MCU_LINK_LIST_RDY	BIT(1)
#define RX_MAX_SIZE		0xda
#define CPLUS_CMD		0xe0
#define  CPLUS_PKT_CNT_DISABLE	BIT(7)
#define  CPLUS_RX_VLAN		BIT(6)
#define  CPLUS_RX_CHKSUM	BIT(5)
#define INTR_MITIGATE		0xe2
#define FIFO_EMPTY_8125		0xe2
#define RX_DESC_LO		0xe4
#define RX_DESC_HI		0xe8
#define MISC			0xf0
#define  MISC_RXDV_GATED	BIT(19)
#define INT_MITI_8125		0xa00
#define MAC0_BKP_8125		0x19e0

/* MAC registers behind OCPDR */
#define MAC_TALLY		0xea84
#define  MAC_TALLY_EXT		GENMASK(1, 0)

/* descriptors, first word */
#define DESC_OWN		BIT(31)
#define DESC_RING_END		BIT(30)
#define DESC_FIRST		BIT(29)
#define DESC_LAST		BIT(28)
#define TD0_LSO			BIT(27)
#define TD0_MSS			GENMASK(26, 16)
#define TD0_IP_CS		BIT(18)
#define TD0_UDP_CS		BIT(17)
#define TD0_TCP_CS		BIT(16)
#define TD_TSO_V4		BIT(26)
#define TD_TSO_V6		BIT(25)
#define TD_TSO_OFFSET		GENMASK(24, 18)
#define TD_LEN			GENMASK(15, 0)
#define RD_PID_UDP		BIT(18)
#define RD_PID_TCP		BIT(17)
#define RD_UDP_FAIL		BIT(15)
#define RD_TCP_FAIL		BIT(14)
#define RD_LEN			GENMASK(13, 0)
/* second word */
#define TD_UDP_CS		BIT(31)
#define TD_TCP_CS		BIT(30)
#define TD_IPV4_CS		BIT(29)
#define TD_IPV6_CS		BIT(28)
#define TD_CS_OFFSET		GENMASK(27, 18)
#define TD_MSS			GENMASK(28, 18)
#define TD_VLAN			BIT(17)
#define RD_VLAN			BIT(16)

/* PHY registers, at OCP address RTL_PHY_BASE + 2 * register */
#define RTL_PHY_BASE		0xa400
#define RTL_PHYSR		26
#define RTL_PHY_PAGE		31
#define PHY_AN_10GBT_CTRL	0xa5d4
#define  PHY_ADV_2500		BIT(7)
#define PHY_AN_10GBT_STAT	0xa5d6
#define  PHY_LP_2500		BIT(5)
#define PHY_PMA_SPEED		0xa616
#define  PHY_PMA_2500		BIT(13)

/**
 * struct rtl_chip - what one generation has that others have not
 * @xid: identification in TxConfig
 * @phy_id: of its PHY
 * @regs: bytes of registers
 * @tx_fifo: bytes
 * @rx_fifo: bytes
 * @frame_max: longest frame, VLAN tag included, FCS not
 * @config3: bits that a jumbo frame needs in Config3
 * @config4: the same in Config4
 * @desc_v1: the first TX descriptor format: MSS or checksum requests, and the
 *	bit for a large send, all in the first word; IPv4 only; the chip finds
 *	the transport header itself
 * @phyar: the PHY is behind PHYAR, with pages, and not behind GPHY_OCP
 * @packet_counter: PktCntrDisable in CPlusCmd concerns IntrMitigate
 * @is_8125: doorbell, interrupt registers, tally and VLAN bits of the RTL8125
 * @miti_ns: unit of the timers in the table of RTL8125's, else 0
 * @pads: does not pad short frames well: the driver has to
 * @pads_ptp: neither short ones to the ports of PTP
 * @tso_plain: cannot do large sends with options in IPv4 or TCP headers over
 *	IPv4, nor such whose last fragment has up to six bytes
 * @tso_loses: the last segment of a large send goes out with a bad FCS
 */
struct rtl_chip {
	u32 xid;
	u32 phy_id;
	u32 regs;
	u32 tx_fifo;
	u32 rx_fifo;
	u32 frame_max;
	u8 config3;
	u8 config4;
	bool desc_v1;
	bool phyar;
	bool packet_counter;
	bool is_8125;
	u32 miti_ns;
	bool pads;
	bool pads_ptp;
	bool tso_plain;
	bool tso_loses;
};

enum rtl_tag {
	TAG_TX_DESC,
	TAG_TX_HDR,
	TAG_TX_DATA,
	TAG_TX_BACK,
	TAG_TX_LAST,
	TAG_RX_DESC,
	TAG_RX_DATA,
	TAG_RX_BACK,
	TAG_COUNTERS,
	TAG_COUNTERS_EXT,
};

enum rtl_timer {
	TIMER_TX_SENT,
	TIMER_TX_MIT,
	TIMER_RX_MIT,
	TIMER_RX_RETRY,
};

struct rtl_desc {
	__le32 opts1;
	__le32 opts2;
	__le64 addr;
};

/* a descriptor the chip holds */
struct rtl_held {
	u32 opts1;
	u32 opts2;
	u64 addr;
	dma_addr_t iova;
};

/* descriptors read ahead of their use, a ring of RTL_CACHE */
struct rtl_fetcher {
	struct rtl_desc line[RTL_LINE];
	struct rtl_held held[RTL_CACHE];
	u32 head;		/* next to be given back */
	u32 tail;		/* where the next one read goes */
	u32 next;		/* its index in the driver's ring */
	u32 n;			/* descriptors of the read under way, or 0 */
	bool polled;		/* may read on */
	bool kicked;		/* told to while reading */
};

/* a packet being read or sent */
struct rtl_pkt {
	u32 opts1;
	u32 opts2;
	u32 ndesc;
	u32 total;		/* bytes */
	u32 last_len;		/* bytes of its last descriptor */
	struct nicsim_tso tso;	/* mss is 0 when it is no large send */
};

/* a frame in the TX FIFO, in order */
struct rtl_seg {
	struct nicsim_frame *frame;	/* NULL: a packet given up */
	struct rtl_pkt *pkt;
	u32 off;		/* of its payload in a large send */
	u32 len;		/* bytes of payload, or the frame */
	u32 room;		/* bytes of FIFO */
	u32 pending;		/* reads under way */
	u64 left;		/* when its last bit has left */
	bool last;		/* of its packet */
};

struct rtl_tx {
	struct rtl_fetcher f;
	u32 use;		/* of held[]: first not taken up */
	u32 lasts;		/* whole packets in held[use..tail) */
	struct rtl_pkt pkt[2 * RTL_CACHE];
	u32 npkt;		/* packets taken up */
	bool busy;		/* a packet is being read */
	bool hdr_ready;
	u32 hdr_pending;
	u32 pos;		/* bytes of its payload asked for */
	u32 cur;		/* read cursor: descriptor, and offset in it */
	u32 cur_off;
	u32 fifo;		/* bytes occupied */
	struct rtl_seg seg[RTL_CACHE];
	u32 seg_sent;		/* oldest on the wire */
	u32 seg_ready;		/* oldest not complete */
	u32 seg_tail;		/* next to be used */
};

struct rtl_rx {
	struct rtl_fetcher f;
	struct list_head fifo;	/* frames without a descriptor */
	struct list_head busy;	/* frames being written */
	u32 bytes;
};

struct rtl_mit {
	u32 frames;
	bool running;
};

struct rtl_counters {
	__le64 tx_packets;
	__le64 rx_packets;
	__le64 tx_errors;
	__le32 rx_errors;
	__le16 rx_missed;
	__le16 align_errors;
	__le32 tx_one_collision;
	__le32 tx_multi_collision;
	__le64 rx_unicast;
	__le64 rx_broadcast;
	__le32 rx_multicast;
	__le16 tx_aborted;
	__le16 tx_underrun;
};

/* behind them, since the RTL8125 */
struct rtl_counters_ext {
	__le64 tx_octets;
	__le64 rx_octets;
	__le64 rx_multicast;
	__le64 tx_unicast;
	__le64 tx_broadcast;
	__le64 tx_multicast;
	__le32 unused[20];
};

struct rtl8168 {
	const struct rtl_chip *chip;
	u8 regs[RTL_REGS_8125];
	u16 phy_page;
	u16 phy[0x8000];
	u16 mac[0x8000];
	u32 eri[0x400];
	u16 ephy[0x80];
	u32 csi[0x400];
	struct rtl_tx tx;
	struct rtl_rx rx;
	struct rtl_mit tx_mit;
	struct rtl_mit rx_mit;
	struct {
		u64 tx_packets, rx_packets, rx_unicast, rx_broadcast;
		u32 rx_multicast;
		u16 rx_missed;
		u64 tx_octets, rx_octets;
		u64 tx_unicast, tx_broadcast, tx_multicast;
	} count;
};

static u16 reg16(struct rtl8168 *c, u32 off)
{
	return get_unaligned_le16(c->regs + off);
}

static u32 reg32(struct rtl8168 *c, u32 off)
{
	return get_unaligned_le32(c->regs + off);
}

static u64 reg64(struct rtl8168 *c, u32 lo, u32 hi)
{
	return (u64)reg32(c, hi) << 32 | reg32(c, lo);
}

/* ---- interrupts ---- */

/* status and mask are 16 bits wide, 32 in the RTL8125 */
static u32 rtl_irq_status(struct rtl8168 *c)
{
	return c->chip->is_8125 ? reg32(c, INTR_STATUS_8125) :
				  reg16(c, INTR_STATUS);
}

static void rtl_irq_update(struct nicsim_port *port, u32 status)
{
	struct rtl8168 *c = port->priv;
	u32 mask;

	if (c->chip->is_8125) {
		put_unaligned_le32(status, c->regs + INTR_STATUS_8125);
		mask = reg32(c, INTR_MASK_8125);
	} else {
		put_unaligned_le16(status, c->regs + INTR_STATUS);
		mask = reg16(c, INTR_MASK);
	}
	nicsim_irq_set(port, status & mask);
}

static void rtl_irq(struct nicsim_port *port, u32 bits)
{
	rtl_irq_update(port, rtl_irq_status(port->priv) | bits);
}

/* ns of the IntrMitigate timers' unit; table in r8169_main.c */
static u32 rtl_mit_unit(struct rtl8168 *c)
{
	static const u32 scale[] = { 1, 8, 16, 32 };
	u32 mbps = nicsim_wire_mbps();
	u32 base = mbps == 10 ? 40960 : mbps == 100 ? 2560 : 5000;

	return base * scale[reg16(c, CPLUS_CMD) & 3];
}

static void rtl_mit_fire(struct nicsim_port *port, bool tx)
{
	struct rtl8168 *c = port->priv;
	struct rtl_mit *m = tx ? &c->tx_mit : &c->rx_mit;

	nicsim_timer_cancel(port, tx ? TIMER_TX_MIT : TIMER_RX_MIT);
	m->frames = 0;
	m->running = false;
	rtl_irq(port, tx ? INTR_TX_OK : INTR_RX_OK);
}

/* a packet is done: now, after so many, or after so long */
static void rtl_mit_event(struct nicsim_port *port, bool tx)
{
	struct rtl8168 *c = port->priv;
	struct rtl_mit *m = tx ? &c->tx_mit : &c->rx_mit;
	u32 mit, frames = 0;
	u64 ns;

	if (c->chip->miti_ns) {
		ns = c->regs[INT_CFG0_8125] & INT_CFG0_BYPASS ? 0 :
		     c->regs[INT_MITI_8125 + (tx ? 2 : 0)] * c->chip->miti_ns;
	} else {
		mit = reg16(c, INTR_MITIGATE) >> (tx ? 8 : 0) & 0xff;
		ns = (u64)(mit >> 4) * rtl_mit_unit(c);
		if (!c->chip->packet_counter ||
		    !(reg16(c, CPLUS_CMD) & CPLUS_PKT_CNT_DISABLE))
			frames = (mit & 0xf) * 4;
	}

	m->frames++;
	if (!ns || (frames && m->frames >= frames)) {
		rtl_mit_fire(port, tx);
	} else if (!m->running) {
		m->running = true;
		nicsim_timer_set(port, tx ? TIMER_TX_MIT : TIMER_RX_MIT, ns);
	}
}

/* ---- descriptor fetch ---- */

static dma_addr_t rtl_ring(struct rtl8168 *c, bool tx)
{
	return tx ? reg64(c, TX_DESC_LO, TX_DESC_HI) :
		    reg64(c, RX_DESC_LO, RX_DESC_HI);
}

static void rtl_fetch(struct nicsim_port *port, bool tx)
{
	struct rtl8168 *c = port->priv;
	struct rtl_fetcher *f = tx ? &c->tx.f : &c->rx.f;
	u32 room = RTL_CACHE - (f->tail - f->head);

	if (!f->polled || f->n || room < RTL_LINE || (tx && port->tx_hang))
		return;
	f->n = RTL_LINE - f->next % RTL_LINE;
	f->kicked = false;
	nicsim_dma_read(port, rtl_ring(c, tx) + f->next * sizeof(f->line[0]),
			f->line, f->n * sizeof(f->line[0]),
			tx ? TAG_TX_DESC : TAG_RX_DESC, NULL);
}

/* a poll request: also while the answer to an earlier one is on its way */
static void rtl_kick(struct nicsim_port *port, bool tx)
{
	struct rtl8168 *c = port->priv;
	struct rtl_fetcher *f = tx ? &c->tx.f : &c->rx.f;

	f->polled = true;
	f->kicked = true;
	rtl_fetch(port, tx);
}

static void rtl_fetched(struct nicsim_port *port, bool tx)
{
	struct rtl8168 *c = port->priv;
	struct rtl_fetcher *f = tx ? &c->tx.f : &c->rx.f;
	u32 i, n = f->n;

	f->n = 0;
	for (i = 0; i < n; i++) {
		struct rtl_held *h = &f->held[f->tail % RTL_CACHE];

		h->opts1 = le32_to_cpu(f->line[i].opts1);
		h->opts2 = le32_to_cpu(f->line[i].opts2);
		h->addr = le64_to_cpu(f->line[i].addr);
		h->iova = rtl_ring(c, tx) + f->next * sizeof(f->line[0]);
		if (!(h->opts1 & DESC_OWN)) {
			f->polled = f->kicked;
			break;
		}
		f->tail++;
		if (tx && h->opts1 & DESC_LAST)
			c->tx.lasts++;
		f->next++;
		if (h->opts1 & DESC_RING_END) {
			f->next = 0;
			break;
		}
	}
	rtl_fetch(port, tx);
}

/* ---- transmit ---- */

static struct rtl_tx *port_tx(struct nicsim_port *port)
{
	return &((struct rtl8168 *)port->priv)->tx;
}

static struct rtl_pkt *tx_pkt(struct rtl_tx *tx)
{
	return &tx->pkt[tx->npkt % ARRAY_SIZE(tx->pkt)];
}

/* read the next bytes of the packet, across its fragments */
static u32 tx_read(struct nicsim_port *port, u8 *to, u32 len, u32 tag,
		   void *ctx)
{
	struct rtl_tx *tx = port_tx(port);
	u32 reads = 0;

	while (len) {
		struct rtl_held *h = &tx->f.held[tx->cur % RTL_CACHE];
		u32 n = min(len, (u32)(h->opts1 & TD_LEN) - tx->cur_off);

		if (nicsim_dma_read(port, h->addr + tx->cur_off, to, n, tag,
				    ctx))
			reads++;
		to += n;
		len -= n;
		tx->cur_off += n;
		if (tx->cur_off == (h->opts1 & TD_LEN)) {
			tx->cur++;
			tx->cur_off = 0;
		}
	}
	return reads;
}

static struct rtl_seg *tx_seg_add(struct rtl_tx *tx, u32 len, bool last)
{
	struct rtl_seg *s = &tx->seg[tx->seg_tail++ % RTL_CACHE];

	memset(s, 0, sizeof(*s));
	s->pkt = tx_pkt(tx);
	s->len = len;
	s->off = tx->pos;
	s->last = last;
	if (last) {
		tx->use += s->pkt->ndesc;
		tx->npkt++;
		tx->busy = false;
	}
	return s;
}

/* without bus mastering reads return zeroes: no mistake of the driver's */
static void tx_error(struct nicsim_port *port, const char *why)
{
	if (nicsim_pci_master(port))
		nicsim_error(port, why);
}

/*
 * Give up a packet the chip cannot send; what the real one would do is not
 * known. Its descriptors go back in their turn.
 */
static void tx_drop(struct nicsim_port *port, const char *why)
{
	tx_error(port, why);
	tx_seg_add(port_tx(port), 0, true);
}

static bool tx_wants_lso(const struct rtl_chip *chip, u32 opts1)
{
	return opts1 & (chip->desc_v1 ? TD0_LSO : TD_TSO_V4 | TD_TSO_V6);
}

/* take up the next whole packet */
static bool tx_begin(struct nicsim_port *port)
{
	const struct rtl_chip *chip = port->ops->chip;
	struct rtl_tx *tx = port_tx(port);
	struct rtl_held *h = &tx->f.held[tx->use % RTL_CACHE];
	struct rtl_pkt *p = tx_pkt(tx);
	const char *bad = NULL;
	u32 i;

	if (!tx->lasts) {
		if (tx->f.head != tx->use ||
		    tx->f.tail - tx->use <= RTL_CACHE - RTL_LINE)
			return false;
		/* no last fragment in all the chip can hold */
		p->ndesc = tx->f.tail - tx->use;
		tx_drop(port, "tx: packet of too many descriptors");
		return true;
	}

	p->opts1 = h->opts1;
	p->opts2 = h->opts2;
	p->total = 0;
	p->tso.mss = 0;
	if (!(h->opts1 & DESC_FIRST))
		bad = "tx: packet without a first descriptor";
	for (i = tx->use; ; i++) {
		h = &tx->f.held[i % RTL_CACHE];
		if (!(h->opts1 & TD_LEN))
			bad = "tx: zero-length descriptor";
		if (i != tx->use && h->opts1 & DESC_FIRST)
			bad = "tx: first descriptor inside a packet";
		p->total += h->opts1 & TD_LEN;
		if (h->opts1 & DESC_LAST)
			break;
	}
	p->last_len = h->opts1 & TD_LEN;
	p->ndesc = i + 1 - tx->use;
	tx->lasts--;
	tx->busy = true;
	tx->hdr_ready = true;
	tx->pos = 0;
	tx->cur = tx->use;
	tx->cur_off = 0;

	if (!bad && p->total < ETH_HLEN)
		bad = "tx: frame shorter than its header";
	if (bad) {
		tx_drop(port, bad);
		return true;
	}

	if (p->total < ETH_ZLEN && chip->pads)
		tx_error(port, "tx: short frame not padded");

	if (tx_wants_lso(chip, p->opts1)) {
		port->tx_lso++;
		tx->hdr_ready = false;
		tx->hdr_pending = tx_read(port, p->tso.hdr,
					  min_t(u32, p->total, RTL_TSO_HDR),
					  TAG_TX_HDR, NULL);
	}
	return true;
}

/* the headers of a large send are there: can the chip do it? */
static const char *tx_lso_start(const struct rtl_chip *chip, struct rtl_pkt *p)
{
	u32 avail = min_t(u32, p->total, RTL_TSO_HDR);
	struct nicsim_tso *t = &p->tso;
	const char *bad;

	if (chip->desc_v1) {
		struct nicsim_l4 l = {};

		/* a frame of another protocol is found out below */
		nicsim_parse(t->hdr, avail, &l);
		bad = nicsim_tso_start(t, avail, l.l4, false,
				       FIELD_GET(TD0_MSS, p->opts1), p->total);
	} else {
		bad = nicsim_tso_start(t, avail,
				       FIELD_GET(TD_TSO_OFFSET, p->opts1),
				       p->opts1 & TD_TSO_V6,
				       FIELD_GET(TD_MSS, p->opts2), p->total);
	}
	if (bad || !chip->tso_plain)
		return bad;

	if (!t->l.v6 && (t->l.l4 - t->l.l3 > sizeof(struct iphdr) ||
			 t->hdr_len - t->l.l4 > sizeof(struct tcphdr)))
		return "tx: TSO of a frame with IP or TCP options";
	if (p->ndesc > 1 && p->last_len <= 6)
		return "tx: TSO with a last fragment of up to 6 bytes";
	return NULL;
}

static void tx_hdr_done(struct nicsim_port *port)
{
	struct rtl_tx *tx = port_tx(port);
	struct rtl_pkt *p = tx_pkt(tx);
	const char *bad;
	u32 skip;

	if (--tx->hdr_pending)
		return;

	bad = tx_lso_start(port->ops->chip, p);
	if (bad) {
		/* no segments are to be made of it */
		p->tso.mss = 0;
		tx_drop(port, bad);
		return;
	}

	/* the payload begins behind the headers, wherever that is */
	tx->cur = tx->use;
	tx->cur_off = 0;
	for (skip = p->tso.hdr_len; skip; ) {
		u32 len = tx->f.held[tx->cur % RTL_CACHE].opts1 & TD_LEN;

		if (skip < len) {
			tx->cur_off = skip;
			break;
		}
		skip -= len;
		tx->cur++;
	}
	tx->hdr_ready = true;
}

static bool tx_jumbo_enabled(struct nicsim_port *port)
{
	const struct rtl_chip *chip = port->ops->chip;
	struct rtl8168 *c = port->priv;

	return !(chip->config3 & ~c->regs[CONFIG3]) &&
	       !(chip->config4 & ~c->regs[CONFIG4]);
}

/* bring the next frame of the packet into the FIFO, if there is room */
static bool tx_next(struct nicsim_port *port)
{
	const struct rtl_chip *chip = port->ops->chip;
	struct rtl_tx *tx = port_tx(port);
	struct rtl_pkt *p = tx_pkt(tx);
	u32 hdr = p->tso.mss ? p->tso.hdr_len : 0;
	u32 left = p->total - hdr - tx->pos;
	u32 len = p->tso.mss ? min(left, p->tso.mss) : left;
	u32 base = p->opts2 & TD_VLAN ? VLAN_HLEN : 0;
	struct nicsim_frame *frame;
	struct rtl_seg *s;

	if (tx->fifo && tx->fifo + hdr + len > chip->tx_fifo)
		return false;
	if (base + hdr + len > chip->frame_max) {
		tx_drop(port, "tx: frame too long");
		return true;
	}
	if (hdr + len > VLAN_ETH_FRAME_LEN && !tx_jumbo_enabled(port))
		tx_error(port, "tx: jumbo frame, but they are not enabled");
	frame = nicsim_frame_alloc();
	if (!frame) {
		nicsim_error(port, "nicsim: out of frame buffers");
		return false;
	}

	s = tx_seg_add(tx, len, len == left);
	s->frame = frame;
	s->room = hdr + len;
	tx->fifo += s->room;
	tx->pos += len;
	s->pending = tx_read(port, frame->data + base + hdr, len, TAG_TX_DATA,
			     s);
	return true;
}

static void tx_complete(struct nicsim_port *port);

static void tx_work(struct nicsim_port *port)
{
	struct rtl_tx *tx = port_tx(port);

	while (tx->seg_tail - tx->seg_sent < RTL_CACHE) {
		if (!tx->busy ? !tx_begin(port) :
				!tx->hdr_ready || !tx_next(port))
			break;
	}
	tx_complete(port);
	rtl_fetch(port, true);
}

/* insert the checksums that are asked for */
static void tx_csum(struct nicsim_port *port, struct rtl_pkt *p, u8 *data,
		    u32 len)
{
	const struct rtl_chip *chip = port->ops->chip;
	bool tcp, udp, ip4, ip6;
	struct nicsim_l4 l = {};
	const char *bad;
	u32 l4;

	if (chip->desc_v1) {
		tcp = p->opts1 & TD0_TCP_CS;
		udp = p->opts1 & TD0_UDP_CS;
		ip4 = p->opts1 & TD0_IP_CS;
		ip6 = false;
		nicsim_parse(data, len, &l);
		l4 = l.l4;
	} else {
		tcp = p->opts2 & TD_TCP_CS;
		udp = p->opts2 & TD_UDP_CS;
		ip4 = p->opts2 & TD_IPV4_CS;
		ip6 = p->opts2 & TD_IPV6_CS;
		l4 = FIELD_GET(TD_CS_OFFSET, p->opts2);
	}
	if (!tcp && !udp)
		return;
	if (ip4 == ip6 || tcp == udp)
		tx_error(port, "tx: contradicting checksum requests");
	if (len < ETH_ZLEN)
		tx_error(port, "tx: checksum request for a short frame");
	port->tx_csum++;
	bad = nicsim_tx_csum(data, len, l4, ip6,
			     tcp ? IPPROTO_TCP : IPPROTO_UDP);
	if (bad)
		tx_error(port, bad);
}

/* as the driver takes it from the vendor's: 319 and 320, 47 bytes */
static bool tx_short_ptp(const u8 *data, u32 len)
{
	struct nicsim_l4 l;
	u16 dest;

	if (!nicsim_parse(data, len, &l) || l.proto != IPPROTO_UDP ||
	    l.l4 + sizeof(struct udphdr) > len)
		return false;
	dest = get_unaligned_be16(data + l.l4 + offsetof(struct udphdr, dest));
	return (dest == 319 || dest == 320) && len - l.l4 < 47;
}

/* a frame is in the FIFO: insert what the driver left to the chip */
static void tx_finish(struct nicsim_port *port, struct rtl_seg *s)
{
	const struct rtl_chip *chip = port->ops->chip;
	struct rtl_pkt *p = s->pkt;
	u32 base = p->opts2 & TD_VLAN ? VLAN_HLEN : 0;
	u8 *data = s->frame->data;

	s->frame->len = base + s->room;
	if (p->tso.mss) {
		nicsim_tso_segment(&p->tso, data + base, s->off, s->len,
				   s->last);
		s->frame->lost = chip->tso_loses && s->last;
	} else {
		tx_csum(port, p, data + base, s->room);
		if (chip->pads_ptp && tx_short_ptp(data + base, s->room))
			tx_error(port, "tx: short PTP packet not padded");
	}

	if (base) {
		memmove(data, data + base, 2 * ETH_ALEN);
		put_unaligned_be16(ETH_P_8021Q, data + 2 * ETH_ALEN);
		put_unaligned_be16(swab16(p->opts2), data + 2 * ETH_ALEN + 2);
	}
}

static void tx_count(struct rtl8168 *c, const struct nicsim_frame *f)
{
	c->count.tx_packets++;
	c->count.tx_octets += f->len;
	if (is_broadcast_ether_addr(f->data))
		c->count.tx_broadcast++;
	else if (is_multicast_ether_addr(f->data))
		c->count.tx_multicast++;
	else
		c->count.tx_unicast++;
}

/* frames whose bytes are all there go to the wire, in order */
static void tx_complete(struct nicsim_port *port)
{
	struct rtl8168 *c = port->priv;
	struct rtl_tx *tx = &c->tx;

	while (tx->seg_ready != tx->seg_tail) {
		struct rtl_seg *s = &tx->seg[tx->seg_ready % RTL_CACHE];

		if (s->pending)
			break;
		s->left = time_travel_now();
		if (s->frame && nicsim_pci_master(port)) {
			tx_finish(port, s);
			tx_count(c, s->frame);
			s->left = nicsim_wire_send(port, s->frame);
		} else {
			nicsim_frame_free(s->frame);
		}
		if (tx->seg_ready++ == tx->seg_sent)
			nicsim_timer_set_at(port, TIMER_TX_SENT, s->left);
	}
}

/* the last bit of a frame has left */
static void tx_sent(struct nicsim_port *port)
{
	struct rtl_tx *tx = port_tx(port);
	struct rtl_fetcher *f = &tx->f;
	u32 i;

	while (tx->seg_sent != tx->seg_ready) {
		struct rtl_seg *s = &tx->seg[tx->seg_sent % RTL_CACHE];

		if (s->left > time_travel_now()) {
			nicsim_timer_set_at(port, TIMER_TX_SENT, s->left);
			break;
		}
		tx->fifo -= s->room;
		for (i = s->last ? s->pkt->ndesc : 0; i; i--) {
			struct rtl_held *h = &f->held[f->head++ % RTL_CACHE];
			__le32 opts1 = cpu_to_le32(h->opts1 & ~DESC_OWN);

			nicsim_dma_write(port, h->iova, &opts1, sizeof(opts1),
					 i == 1 ? TAG_TX_LAST : TAG_TX_BACK,
					 NULL);
		}
		tx->seg_sent++;
	}
	tx_work(port);
}

static bool tx_idle(struct rtl8168 *c)
{
	return !c->tx.f.polled && !c->tx.busy && !c->tx.lasts &&
	       c->tx.seg_sent == c->tx.seg_tail;
}

/* ---- receive ---- */

static bool rx_wanted(struct rtl8168 *c, const u8 *dst)
{
	u32 accept = reg32(c, RX_CONFIG);

	if (accept & RX_ACCEPT_ALL_PHYS)
		return true;
	if (is_broadcast_ether_addr(dst))
		return accept & RX_ACCEPT_BROADCAST;
	if (is_multicast_ether_addr(dst)) {
		/* 64 bits in the order the driver byte-swaps them to */
		u32 bit = ether_crc(ETH_ALEN, dst) >> 26;

		return accept & RX_ACCEPT_MULTICAST &&
		       c->regs[MAR0 + 7 - bit / 8] & BIT(bit % 8);
	}
	return accept & RX_ACCEPT_MY_PHYS &&
	       ether_addr_equal_unaligned(dst, c->regs + MAC0);
}

/* status of a received frame; strips the tag if it should */
static u32 rx_status(struct rtl8168 *c, struct nicsim_frame *f, u32 *opts2)
{
	u16 cmd = reg16(c, CPLUS_CMD);
	u32 opts1 = DESC_FIRST | DESC_LAST;
	struct nicsim_l4 l;

	if (cmd & CPLUS_RX_CHKSUM && nicsim_parse(f->data, f->len, &l)) {
		bool ok;

		if (l.proto == IPPROTO_TCP) {
			ok = nicsim_rx_csum_ok(f->data, f->len, &l);
			opts1 |= RD_PID_TCP | (ok ? 0 : RD_TCP_FAIL);
		} else if (l.proto == IPPROTO_UDP) {
			ok = nicsim_rx_csum_ok(f->data, f->len, &l);
			opts1 |= RD_PID_UDP | (ok ? 0 : RD_UDP_FAIL);
		} else {
			opts1 |= RD_PID_TCP | RD_PID_UDP;
		}
	}

	*opts2 = 0;
	if ((c->chip->is_8125 ? reg32(c, RX_CONFIG) & RX_VLAN_8125 :
				cmd & CPLUS_RX_VLAN) &&
	    get_unaligned_be16(f->data + 2 * ETH_ALEN) == ETH_P_8021Q) {
		*opts2 = RD_VLAN | swab16(get_unaligned_be16(f->data +
							     2 * ETH_ALEN + 2));
		memmove(f->data + 2 * ETH_ALEN,
			f->data + 2 * ETH_ALEN + VLAN_HLEN,
			f->len - 2 * ETH_ALEN - VLAN_HLEN);
		f->len -= VLAN_HLEN;
	}
	return opts1;
}

static void rx_work(struct nicsim_port *port)
{
	struct rtl8168 *c = port->priv;
	struct rtl_rx *rx = &c->rx;

	/* held: given back up to head, in use up to tail */
	while (rx->f.head != rx->f.tail && !list_empty(&rx->fifo)) {
		struct nicsim_frame *f = list_first_entry(&rx->fifo,
							  struct nicsim_frame,
							  list);
		struct rtl_held *h = &rx->f.held[rx->f.head++ % RTL_CACHE];
		struct rtl_desc d;
		u32 opts1, opts2;

		list_move_tail(&f->list, &rx->busy);
		opts1 = rx_status(c, f, &opts2) | (h->opts1 & DESC_RING_END);
		memset(f->data + f->len, 0, ETH_FCS_LEN);
		f->len += ETH_FCS_LEN;
		if (!(h->opts1 & RD_LEN)) {
			nicsim_error(port, "rx: zero-length buffer");
			f->len = 0;
		} else if (f->len > (h->opts1 & RD_LEN)) {
			/* larger than its buffer: the driver would see parts */
			nicsim_error(port, "rx: frame larger than its buffer");
			f->len = h->opts1 & RD_LEN;
			opts1 &= ~DESC_LAST;
		}
		d.opts1 = cpu_to_le32(opts1 | f->len);
		d.opts2 = cpu_to_le32(opts2);
		if (f->len)
			nicsim_dma_write(port, h->addr, f->data, f->len,
					 TAG_RX_DATA, NULL);
		nicsim_dma_write(port, h->iova, &d, sizeof(d.opts1) +
				 sizeof(d.opts2), TAG_RX_BACK, f);
	}

	if (rx->f.tail - rx->f.head <= RTL_CACHE / 2)
		rtl_fetch(port, false);
	if (!list_empty(&rx->fifo) && !rx->f.n && !rx->f.polled) {
		rtl_irq(port, INTR_RX_UNAVAIL);
		nicsim_timer_set(port, TIMER_RX_RETRY, RTL_RX_RETRY_NS);
	}
}

static void rtl_rx_frame(struct nicsim_port *port, struct nicsim_frame *frame)
{
	struct rtl8168 *c = port->priv;
	struct rtl_rx *rx = &c->rx;

	if (!(c->regs[CHIP_CMD] & CMD_RX_ENB) ||
	    reg32(c, MISC) & MISC_RXDV_GATED || !rx_wanted(c, frame->data) ||
	    frame->len > c->chip->frame_max ||
	    frame->len + ETH_FCS_LEN > reg16(c, RX_MAX_SIZE)) {
		nicsim_frame_free(frame);
		return;
	}
	if (rx->bytes + frame->len > c->chip->rx_fifo) {
		c->count.rx_missed++;
		nicsim_frame_free(frame);
		return;
	}
	rx->bytes += frame->len;
	frame->room = frame->len;
	list_add_tail(&frame->list, &rx->fifo);
	if (!rx->f.polled)
		rtl_kick(port, false);
	rx_work(port);
}

static void rx_done(struct nicsim_port *port, struct nicsim_frame *f)
{
	struct rtl8168 *c = port->priv;

	c->count.rx_packets++;
	c->count.rx_octets += f->room;
	if (is_broadcast_ether_addr(f->data))
		c->count.rx_broadcast++;
	else if (is_multicast_ether_addr(f->data))
		c->count.rx_multicast++;
	else
		c->count.rx_unicast++;
	c->rx.bytes -= f->room;
	list_del(&f->list);
	nicsim_frame_free(f);
	rtl_mit_event(port, false);
	rx_work(port);
}

static void rtl_dma_done(struct nicsim_port *port, u32 tag, void *ctx)
{
	struct rtl_seg *s = ctx;

	switch (tag) {
	case TAG_TX_DESC:
		rtl_fetched(port, true);
		tx_work(port);
		break;
	case TAG_TX_HDR:
		tx_hdr_done(port);
		tx_work(port);
		break;
	case TAG_TX_DATA:
		if (!--s->pending)
			tx_complete(port);
		break;
	case TAG_TX_LAST:
		rtl_mit_event(port, true);
		break;
	case TAG_RX_DESC:
		rtl_fetched(port, false);
		rx_work(port);
		break;
	case TAG_RX_BACK:
		rx_done(port, ctx);
		break;
	case TAG_COUNTERS:
		((struct rtl8168 *)port->priv)->regs[COUNTER_LO] &=
			~COUNTER_DUMP;
		break;
	}
}

static void rtl_timer_due(struct nicsim_port *port, unsigned int id)
{
	switch (id) {
	case TIMER_TX_SENT:
		tx_sent(port);
		break;
	case TIMER_TX_MIT:
	case TIMER_RX_MIT:
		rtl_mit_fire(port, id == TIMER_TX_MIT);
		break;
	case TIMER_RX_RETRY:
		rtl_kick(port, false);
		break;
	}
}

/* ---- PHY ---- */

static u16 *phy_reg(struct rtl8168 *c, u32 reg)
{
	return &c->phy[(RTL_PHY_BASE + 2 * reg) / 2];
}

static void phy_advertise(struct nicsim_port *port)
{
	struct rtl8168 *c = port->priv;
	u16 bmcr = *phy_reg(c, MII_BMCR), adv = *phy_reg(c, MII_ADVERTISE);
	u32 speeds = 0;

	if (bmcr & BMCR_PDOWN) {
		speeds = 0;
	} else if (bmcr & BMCR_ANENABLE) {
		if (adv & ADVERTISE_10FULL)
			speeds |= NICSIM_SPEED_10;
		if (adv & ADVERTISE_100FULL)
			speeds |= NICSIM_SPEED_100;
		if (*phy_reg(c, MII_CTRL1000) & ADVERTISE_1000FULL)
			speeds |= NICSIM_SPEED_1000;
		if (c->chip->is_8125 &&
		    c->phy[PHY_AN_10GBT_CTRL / 2] & PHY_ADV_2500)
			speeds |= NICSIM_SPEED_2500;
	} else if (bmcr & BMCR_SPEED1000) {
		speeds = NICSIM_SPEED_1000;
	} else {
		speeds = bmcr & BMCR_SPEED100 ? NICSIM_SPEED_100 :
						NICSIM_SPEED_10;
	}
	nicsim_wire_advertise(port, speeds);
}

static u16 phy_read(struct nicsim_port *port, u32 reg)
{
	struct rtl8168 *c = port->priv;
	u32 mbps = nicsim_wire_mbps();
	u16 val = c->phy[reg / 2];

	if (c->chip->is_8125 && reg == PHY_PMA_SPEED)
		return PHY_PMA_2500;
	if (c->chip->is_8125 && reg == PHY_AN_10GBT_STAT)
		return mbps == 2500 ? PHY_LP_2500 : 0;
	if (reg < RTL_PHY_BASE || reg >= RTL_PHY_BASE + 64)
		return val;

	switch ((reg - RTL_PHY_BASE) / 2) {
	case MII_BMSR:
		return BMSR_ERCAP | BMSR_ANEGCAPABLE | BMSR_ESTATEN |
		       BMSR_10HALF | BMSR_10FULL | BMSR_100HALF | BMSR_100FULL |
		       (mbps ? BMSR_LSTATUS | BMSR_ANEGCOMPLETE : 0);
	case MII_PHYSID1:
		return c->chip->phy_id >> 16;
	case MII_PHYSID2:
		return c->chip->phy_id;
	case MII_LPA:
		/* enough to agree upon the speed there is */
		return !mbps ? 0 : ADVERTISE_CSMA | LPA_LPACK | LPA_10FULL |
				   (mbps > 10 ? LPA_100FULL : 0);
	case MII_STAT1000:
		return mbps >= 1000 ? LPA_1000FULL | LPA_1000LOCALRXOK |
				      LPA_1000REMRXOK : 0;
	case MII_MMD_DATA:
		/* EEE, which this is read for, is not modelled */
		return 0;
	case MII_ESTATUS:
		return ESTATUS_1000_TFULL | ESTATUS_1000_THALF;
	case RTL_PHYSR:
		return mbps == 2500 ? 0x0218 : mbps == 1000 ? 0x0028 :
		       mbps == 100 ? 0x0018 : 0x0008;
	}
	return val;
}

static void phy_write(struct nicsim_port *port, u32 reg, u16 val)
{
	struct rtl8168 *c = port->priv;
	u16 old = c->phy[reg / 2];
	u16 *bmcr = phy_reg(c, MII_BMCR);

	c->phy[reg / 2] = val;
	if (&c->phy[reg / 2] != bmcr)
		return;

	*bmcr = val & ~(BMCR_RESET | BMCR_ANRESTART);
	if (val & (BMCR_RESET | BMCR_ANRESTART) ||
	    (old ^ val) & (BMCR_PDOWN | BMCR_ANENABLE | BMCR_SPEED1000 |
			   BMCR_SPEED100))
		phy_advertise(port);
}

/* where a register of PHYAR is kept: page 0 is what GPHY_OCP shows as well */
static u32 phyar_addr(struct rtl8168 *c, u32 reg)
{
	if (!c->phy_page)
		return RTL_PHY_BASE + 2 * reg;
	return 2 * ((c->phy_page & 0x1ff) << 5 | reg);
}

static void rtl_link_change(struct nicsim_port *port, u32 mbps)
{
	struct rtl8168 *c = port->priv;

	c->regs[PHY_STATUS] = !mbps ? 0 : 0x03 | (mbps == 1000 ? 0x10 :
						  mbps == 100 ? 0x08 :
						  mbps == 10 ? 0x04 : 0);
	rtl_irq(port, INTR_LINK_CHG);
}

/* ---- registers ---- */

static void rtl_reset(struct nicsim_port *port)
{
	struct rtl8168 *c = port->priv;
	struct rtl_tx *tx = &c->tx;
	int i;

	for (i = 0; i < NICSIM_TIMERS; i++)
		nicsim_timer_cancel(port, i);
	nicsim_dma_reset(port);

	/* what is on the wire is gone; what is in the FIFOs is lost */
	for (; tx->seg_ready != tx->seg_tail; tx->seg_ready++)
		nicsim_frame_free(tx->seg[tx->seg_ready % RTL_CACHE].frame);
	memset(tx, 0, sizeof(*tx));
	port->tx_hang = 0;

	list_splice_init(&c->rx.busy, &c->rx.fifo);
	while (!list_empty(&c->rx.fifo)) {
		struct nicsim_frame *f = list_first_entry(&c->rx.fifo,
							  struct nicsim_frame,
							  list);

		list_del(&f->list);
		nicsim_frame_free(f);
	}
	memset(&c->rx.f, 0, sizeof(c->rx.f));
	c->rx.bytes = 0;

	memset(&c->tx_mit, 0, sizeof(c->tx_mit));
	memset(&c->rx_mit, 0, sizeof(c->rx_mit));
	c->regs[CHIP_CMD] = 0;
	c->regs[COUNTER_LO] &= ~(COUNTER_DUMP | COUNTER_RESET);
	if (c->chip->is_8125) {
		put_unaligned_le32(0, c->regs + INTR_MASK_8125);
		memset(c->regs + INT_MITI_8125, 0, 0x100);
	} else {
		put_unaligned_le16(0, c->regs + INTR_MASK);
		put_unaligned_le16(0, c->regs + INTR_MITIGATE);
	}
	rtl_irq_update(port, 0);
}

static void rtl_counters(struct nicsim_port *port, u32 cmd)
{
	struct rtl8168 *c = port->priv;
	u64 iova = reg64(c, COUNTER_LO, COUNTER_HI) & ~63ULL;
	struct rtl_counters dump = {
		.tx_packets = cpu_to_le64(c->count.tx_packets),
		.rx_packets = cpu_to_le64(c->count.rx_packets),
		.rx_missed = cpu_to_le16(c->count.rx_missed),
		.rx_unicast = cpu_to_le64(c->count.rx_unicast),
		.rx_broadcast = cpu_to_le64(c->count.rx_broadcast),
		.rx_multicast = cpu_to_le32(c->count.rx_multicast),
	};

	struct rtl_counters_ext ext = {
		.tx_octets = cpu_to_le64(c->count.tx_octets),
		.rx_octets = cpu_to_le64(c->count.rx_octets),
		.rx_multicast = cpu_to_le64(c->count.rx_multicast),
		.tx_unicast = cpu_to_le64(c->count.tx_unicast),
		.tx_broadcast = cpu_to_le64(c->count.tx_broadcast),
		.tx_multicast = cpu_to_le64(c->count.tx_multicast),
	};
	u32 off;

	BUILD_BUG_ON(sizeof(dump) != NICSIM_DMA_INLINE);
	BUILD_BUG_ON(sizeof(ext) % NICSIM_DMA_INLINE);

	if (cmd & COUNTER_RESET) {
		memset(&c->count, 0, sizeof(c->count));
		c->regs[COUNTER_LO] &= ~COUNTER_RESET;
	}
	if (!(cmd & COUNTER_DUMP))
		return;
	/* the first part last, it says that all is there */
	if (c->chip->is_8125 && c->mac[MAC_TALLY / 2] & MAC_TALLY_EXT)
		for (off = 0; off < sizeof(ext); off += NICSIM_DMA_INLINE)
			nicsim_dma_write(port, iova + sizeof(dump) + off,
					 (u8 *)&ext + off, NICSIM_DMA_INLINE,
					 TAG_COUNTERS_EXT, NULL);
	nicsim_dma_write(port, iova, &dump, sizeof(dump), TAG_COUNTERS, NULL);
}

/*
 * Indirect registers: a command with the flag set is a write and completes by
 * clearing it, one without is a read and completes by setting it. All of them
 * complete at once here.
 */
static void rtl_indirect(struct nicsim_port *port, u32 off)
{
	struct rtl8168 *c = port->priv;
	u32 cmd = reg32(c, off);
	bool write = cmd & CMD_FLAG;
	u32 out = write ? 0 : CMD_FLAG;
	u32 i;

	switch (off) {
	case PHYAR:
		i = cmd >> 16 & 0x1f;
		if (i == RTL_PHY_PAGE && write)
			c->phy_page = cmd;
		else if (i == RTL_PHY_PAGE)
			out |= c->phy_page;
		else if (write)
			phy_write(port, phyar_addr(c, i), cmd);
		else
			out |= phy_read(port, phyar_addr(c, i));
		break;
	case GPHY_OCP:
		i = cmd >> 15 & 0xfffe;
		if (write)
			phy_write(port, i, cmd);
		else
			out |= phy_read(port, i);
		break;
	case OCPDR:
		i = cmd >> 15 & 0xfffe;
		if (write)
			c->mac[i / 2] = cmd;
		out = write ? 0 : c->mac[i / 2];
		break;
	case EPHYAR:
		i = cmd >> 16 & 0x7f;
		if (write)
			c->ephy[i] = cmd;
		else
			out |= c->ephy[i];
		break;
	case ERIAR:
		i = (cmd & 0xfff) / 4;
		if (write) {
			u32 keep = 0, b;

			for (b = 0; b < 4; b++)
				if (!(cmd & BIT(12 + b)))
					keep |= 0xffU << (8 * b);
			c->eri[i] = (c->eri[i] & keep) |
				    (reg32(c, ERIDR) & ~keep);
		} else {
			put_unaligned_le32(c->eri[i], c->regs + ERIDR);
		}
		break;
	case CSIAR:
		i = (cmd & 0xfff) / 4;
		if (write)
			c->csi[i] = reg32(c, CSIDR);
		else
			put_unaligned_le32(c->csi[i], c->regs + CSIDR);
		break;
	}
	put_unaligned_le32(out, c->regs + off);
}

static u32 rtl_reg_read(struct nicsim_port *port, u32 off, int size)
{
	struct rtl8168 *c = port->priv;
	u32 val;

	/* derived ones first */
	val = reg32(c, TX_CONFIG) & TX_CONFIG_WRITABLE & ~TX_CONFIG_EMPTY;
	put_unaligned_le32(val | c->chip->xid << 20 |
			   (tx_idle(c) ? TX_CONFIG_EMPTY : 0),
			   c->regs + TX_CONFIG);
	if (c->chip->is_8125) {
		put_unaligned_le16(c->tx.f.polled ? TX_POLL_NPQ_8125 : 0,
				   c->regs + TX_POLL_8125);
		put_unaligned_le16((tx_idle(c) ? 0x0100 : 0) |
				   (c->rx.bytes ? 0 : 0x0003),
				   c->regs + FIFO_EMPTY_8125);
	} else {
		c->regs[TX_POLL] = c->tx.f.polled ? TX_POLL_NPQ : 0;
	}
	c->regs[MCU] |= MCU_LINK_LIST_RDY | MCU_TX_EMPTY | MCU_RX_EMPTY;
	if (!tx_idle(c))
		c->regs[MCU] &= ~MCU_TX_EMPTY;
	if (c->rx.bytes)
		c->regs[MCU] &= ~MCU_RX_EMPTY;

	if (off + size > c->chip->regs)
		return 0;
	if (size == 1)
		return c->regs[off];
	if (size == 2)
		return reg16(c, off);
	return reg32(c, off);
}

/* registers that the RTL8125 has elsewhere, or alone; false for others */
static bool rtl_special_write(struct nicsim_port *port, u32 off, u32 val)
{
	struct rtl8168 *c = port->priv;
	bool is_8125 = c->chip->is_8125;

	if (off == (is_8125 ? TX_POLL_8125 : TX_POLL)) {
		if (val & (is_8125 ? TX_POLL_NPQ_8125 : TX_POLL_NPQ) &&
		    c->regs[CHIP_CMD] & CMD_TX_ENB)
			rtl_kick(port, true);
		tx_work(port);
	} else if (off == (is_8125 ? INTR_MASK_8125 : INTR_MASK)) {
		rtl_irq_update(port, rtl_irq_status(c));
	} else if (is_8125 && (off & ~3U) == INT_MITI_8125) {
		if (c->regs[INT_MITI_8125 + 1] || c->regs[INT_MITI_8125 + 3])
			nicsim_error(port,
				     "reg: INT_MITI field of unknown meaning");
	} else {
		return false;
	}
	return true;
}

static void rtl_reg_write(struct nicsim_port *port, u32 off, int size, u32 val)
{
	struct rtl8168 *c = port->priv;
	u32 i, v;

	if (off + size > c->chip->regs)
		return;

	/* write-one-to-clear, and nothing else is in these bytes */
	if (off == (c->chip->is_8125 ? INTR_STATUS_8125 : INTR_STATUS)) {
		rtl_irq_update(port, rtl_irq_status(c) & ~val);
		return;
	}

	for (i = 0, v = val; i < size; i++, v >>= 8)
		c->regs[off + i] = v;

	if (rtl_special_write(port, off, val))
		return;
	switch (off) {
	case CHIP_CMD:
		if (val & CMD_RESET)
			rtl_reset(port);
		break;
	case COUNTER_LO:
		rtl_counters(port, val);
		break;
	case PHYAR:
		if (c->chip->phyar)
			rtl_indirect(port, off);
		break;
	case GPHY_OCP:
		if (!c->chip->phyar)
			rtl_indirect(port, off);
		break;
	case OCPDR:
	case EPHYAR:
	case ERIAR:
	case CSIAR:
		rtl_indirect(port, off);
		break;
	}
}

static int rtl_init(struct nicsim_port *port)
{
	/* an address of Realtek's, and the port's number */
	u8 mac[ETH_ALEN] = { 0x00, 0xe0, 0x4c, 0x68, 0x00, port->index + 1 };
	struct rtl8168 *c = port->priv;

	c->chip = port->ops->chip;
	INIT_LIST_HEAD(&c->rx.fifo);
	INIT_LIST_HEAD(&c->rx.busy);
	memcpy(c->regs + MAC0, mac, ETH_ALEN);
	if (c->chip->is_8125)
		memcpy(c->regs + MAC0_BKP_8125, mac, ETH_ALEN);
	c->eri[0xe0 / 4] = get_unaligned_le32(mac);
	c->eri[0xe4 / 4] = get_unaligned_le16(mac + 4);
	*phy_reg(c, MII_BMCR) = BMCR_ANENABLE | BMCR_FULLDPLX | BMCR_SPEED1000 |
				BMCR_PDOWN;
	*phy_reg(c, MII_ADVERTISE) = ADVERTISE_ALL | ADVERTISE_CSMA;
	*phy_reg(c, MII_CTRL1000) = ADVERTISE_1000FULL;
	return 0;
}

/* what all of them have; the values of the last two are postulated */
#define RTL_OPS \
	.bus			= &nicsim_pci_bus, \
	.vendor			= PCI_VENDOR_ID_REALTEK, \
	.bar			= 2, \
	.priv_size		= sizeof(struct rtl8168), \
	.init			= rtl_init, \
	.reg_read		= rtl_reg_read, \
	.reg_write		= rtl_reg_write, \
	.dma_done		= rtl_dma_done, \
	.rx_frame		= rtl_rx_frame, \
	.timer			= rtl_timer_due, \
	.link_change		= rtl_link_change, \
	.dma_req_max		= 4096, \
	.dma_outstanding	= 2

static const struct rtl_chip rtl8168b = {
	.xid			= 0x380,
	.phy_id			= 0x001cc912,
	.regs			= RTL_REGS,
	.tx_fifo		= SZ_8K,
	.rx_fifo		= SZ_16K + SZ_32K,
	.frame_max		= SZ_4K - ETH_FCS_LEN,
	.config4		= JUMBO_8168B,
	.desc_v1		= true,
	.phyar			= true,
};

const struct nicsim_ops nicsim_rtl8168b = {
	RTL_OPS,
	.name			= "rtl8168b",
	.device			= 0x8168,
	.revision		= 0x01,
	.bar_size		= SZ_4K,
	.chip			= &rtl8168b,
};

static const struct rtl_chip rtl8168c = {
	.xid			= 0x3c4,
	.phy_id			= 0x001cc912,
	.regs			= RTL_REGS,
	.tx_fifo		= SZ_8K,
	.rx_fifo		= SZ_16K + SZ_32K,
	.frame_max		= SZ_4K + SZ_2K - ETH_FCS_LEN,
	.config3		= JUMBO_EN0,
	.config4		= JUMBO_EN1,
	.phyar			= true,
	.tso_loses		= true,
};

const struct nicsim_ops nicsim_rtl8168c = {
	RTL_OPS,
	.name			= "rtl8168c",
	.device			= 0x8168,
	.revision		= 0x02,
	.bar_size		= SZ_4K,
	.chip			= &rtl8168c,
};

static const struct rtl_chip rtl8168evl = {
	.xid			= 0x2c8,
	.phy_id			= 0x001cc915,
	.regs			= RTL_REGS,
	.tx_fifo		= SZ_8K,
	.rx_fifo		= SZ_16K + SZ_32K,
	.frame_max		= SZ_8K + SZ_1K - ETH_FCS_LEN,
	.phyar			= true,
	.packet_counter		= true,
	.pads			= true,
	.tso_plain		= true,
};

const struct nicsim_ops nicsim_rtl8168evl = {
	RTL_OPS,
	.name			= "rtl8168evl",
	.device			= 0x8168,
	.revision		= 0x06,
	.bar_size		= SZ_4K,
	.chip			= &rtl8168evl,
};

static const struct rtl_chip rtl8168h = {
	.xid			= 0x541,
	.phy_id			= 0x001cc800,
	.regs			= RTL_REGS,
	.tx_fifo		= SZ_8K,
	.rx_fifo		= SZ_16K + SZ_32K,
	.frame_max		= SZ_8K + SZ_1K,
	.packet_counter		= true,
};

const struct nicsim_ops nicsim_rtl8168h = {
	RTL_OPS,
	.name			= "rtl8168h",
	.device			= 0x8168,
	.revision		= 0x15,
	.bar_size		= SZ_4K,
	.chip			= &rtl8168h,
};

static const struct rtl_chip rtl8125b = {
	.xid			= 0x641,
	.phy_id			= 0x001cc840,
	.regs			= RTL_REGS_8125,
	.tx_fifo		= SZ_32K,
	.rx_fifo		= SZ_16K + SZ_32K,
	.frame_max		= SZ_16K - ETH_FCS_LEN,
	.is_8125		= true,
	.miti_ns		= 2048,
	.pads			= true,
	.pads_ptp		= true,
};

const struct nicsim_ops nicsim_rtl8125b = {
	RTL_OPS,
	.name			= "rtl8125b",
	.device			= 0x8125,
	.revision		= 0x05,
	.bar_size		= RTL_REGS_8125,
	.pcie_gen		= 2,
	.chip			= &rtl8125b,
};
