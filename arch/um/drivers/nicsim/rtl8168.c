// SPDX-License-Identifier: GPL-2.0
/*
 * nicsim: Realtek RTL8168H/8111H (XID 541), a PCIe Gigabit Ethernet controller
 * with its PHY.
 *
 * No register manual of this part is public. Sources, by what they told:
 *	registers and descriptors: drivers/net/ethernet/realtek/r8169_main.c
 *	the same of the ancestor: RTL8169 manual, revision 1.21
 * Postulated, since no source says:
 *	four descriptors a fetch (what the vendor's driver writes to a register
 *	it calls TDFNR); TX FIFO of 8 KiB (the RTL8169's), RX FIFO of 48 KiB;
 *	two outstanding reads; the mitigation timer starts with the first event
 *	after the last interrupt; a receiver without a free descriptor looks
 *	again with each frame, and after 5 us without one.
 *
 * TX: a write to TxPoll makes an idle fetcher read descriptors, up to the end
 * of a 64-byte line, until it meets one it does not own; that one is not read
 * again without another TxPoll. Whole packets are read into the FIFO segment
 * by segment, checksummed there, and sent. The descriptors of a packet are
 * given back when its last bit has left, with TxOK.
 *
 * RX: frames that pass the filter wait in the FIFO for a descriptor, are
 * written with four bytes where the FCS would be (zero, it is not carried),
 * then the descriptor, then RxOK.
 *
 * Not modelled: that the real chip seems to give back all but the last
 * descriptor of a packet earlier, and that it loses requests by TxPoll that
 * come too close, as a comment in r8169 has it; high priority queue, wake-up,
 * EEE, ASPM, firmware, pause frames, receive errors, half duplex, MSI-X, I/O
 * ports.
 */
#include <linux/bitfield.h>
#include <linux/crc32.h>
#include <linux/etherdevice.h>
#include <linux/if_vlan.h>
#include <linux/mii.h>
#include <linux/unaligned.h>
#include "nicsim.h"

#define RTL_XID			0x541
#define RTL_REGS		256
#define RTL_BAR_SIZE		4096
#define RTL_TX_FIFO		8192
#define RTL_RX_FIFO		49152
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
#define  INTR_LINK_CHG		BIT(5)
#define  INTR_RX_UNAVAIL	BIT(4)
#define  INTR_TX_OK		BIT(2)
#define  INTR_RX_OK		BIT(0)
#define TX_CONFIG		0x40
#define  TX_CONFIG_EMPTY	BIT(11)
#define  TX_CONFIG_WRITABLE	0x030fffff
#define RX_CONFIG		0x44
#define  RX_ACCEPT_BROADCAST	BIT(3)
#define  RX_ACCEPT_MULTICAST	BIT(2)
#define  RX_ACCEPT_MY_PHYS	BIT(1)
#define  RX_ACCEPT_ALL_PHYS	BIT(0)
#define CSIDR			0x64
#define CSIAR			0x68
#define PHY_STATUS		0x6c
#define ERIDR			0x70
#define ERIAR			0x74
#define EPHYAR			0x80
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
#define RX_DESC_LO		0xe4
#define RX_DESC_HI		0xe8
#define MISC			0xf0
#define  MISC_RXDV_GATED	BIT(19)

/* descriptors, first word */
#define DESC_OWN		BIT(31)
#define DESC_RING_END		BIT(30)
#define DESC_FIRST		BIT(29)
#define DESC_LAST		BIT(28)
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
#define RTL_PHY_ID1		0x001c
#define RTL_PHY_ID2		0xc800
#define RTL_PHYSR		26

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

struct rtl8168 {
	u8 regs[RTL_REGS];
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

static void rtl_irq_update(struct nicsim_port *port)
{
	struct rtl8168 *c = port->priv;

	nicsim_irq_set(port, reg16(c, INTR_STATUS) & reg16(c, INTR_MASK));
}

static void rtl_irq(struct nicsim_port *port, u16 bits)
{
	struct rtl8168 *c = port->priv;

	put_unaligned_le16(reg16(c, INTR_STATUS) | bits, c->regs + INTR_STATUS);
	rtl_irq_update(port);
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
	u32 mit = reg16(c, INTR_MITIGATE) >> (tx ? 8 : 0) & 0xff;
	u32 usecs = mit >> 4, frames = (mit & 0xf) * 4;

	if (reg16(c, CPLUS_CMD) & CPLUS_PKT_CNT_DISABLE)
		frames = 0;

	m->frames++;
	if (!usecs || (frames && m->frames >= frames)) {
		rtl_mit_fire(port, tx);
	} else if (!m->running) {
		m->running = true;
		nicsim_timer_set(port, tx ? TIMER_TX_MIT : TIMER_RX_MIT,
				 (u64)usecs * rtl_mit_unit(c));
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

	if (!f->polled || f->n || room < RTL_LINE)
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

/* take up the next whole packet */
static bool tx_begin(struct nicsim_port *port)
{
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

	if (p->opts1 & (TD_TSO_V4 | TD_TSO_V6)) {
		tx->hdr_ready = false;
		tx->hdr_pending = tx_read(port, p->tso.hdr,
					  min_t(u32, p->total, RTL_TSO_HDR),
					  TAG_TX_HDR, NULL);
	}
	return true;
}

static void tx_hdr_done(struct nicsim_port *port)
{
	struct rtl_tx *tx = port_tx(port);
	struct rtl_pkt *p = tx_pkt(tx);
	const char *bad;
	u32 skip;

	if (--tx->hdr_pending)
		return;

	bad = nicsim_tso_start(&p->tso, min_t(u32, p->total, RTL_TSO_HDR),
			       FIELD_GET(TD_TSO_OFFSET, p->opts1),
			       p->opts1 & TD_TSO_V6,
			       FIELD_GET(TD_MSS, p->opts2), p->total);
	if (bad) {
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

/* bring the next frame of the packet into the FIFO, if there is room */
static bool tx_next(struct nicsim_port *port)
{
	struct rtl_tx *tx = port_tx(port);
	struct rtl_pkt *p = tx_pkt(tx);
	u32 hdr = p->tso.mss ? p->tso.hdr_len : 0;
	u32 left = p->total - hdr - tx->pos;
	u32 len = p->tso.mss ? min(left, p->tso.mss) : left;
	u32 base = p->opts2 & TD_VLAN ? VLAN_HLEN : 0;
	struct nicsim_frame *frame;
	struct rtl_seg *s;

	if (tx->fifo && tx->fifo + hdr + len > RTL_TX_FIFO)
		return false;
	if (base + hdr + len > NICSIM_FRAME_MAX) {
		tx_drop(port, "tx: frame too long");
		return true;
	}
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

/* a frame is in the FIFO: insert what the driver left to the chip */
static void tx_finish(struct nicsim_port *port, struct rtl_seg *s)
{
	struct rtl_pkt *p = s->pkt;
	u32 base = p->opts2 & TD_VLAN ? VLAN_HLEN : 0;
	u8 *data = s->frame->data;
	const char *bad = NULL;

	s->frame->len = base + s->room;
	if (p->tso.mss) {
		nicsim_tso_segment(&p->tso, data + base, s->off, s->len,
				   s->last);
	} else if (p->opts2 & (TD_TCP_CS | TD_UDP_CS)) {
		if (!(p->opts2 & TD_IPV4_CS) == !(p->opts2 & TD_IPV6_CS) ||
		    !(p->opts2 & TD_TCP_CS) == !(p->opts2 & TD_UDP_CS))
			tx_error(port, "tx: contradicting checksum requests");
		bad = nicsim_tx_csum(data + base, s->room,
				     FIELD_GET(TD_CS_OFFSET, p->opts2),
				     p->opts2 & TD_IPV6_CS,
				     p->opts2 & TD_TCP_CS ? IPPROTO_TCP :
							    IPPROTO_UDP);
		if (bad)
			tx_error(port, bad);
	}

	if (base) {
		memmove(data, data + base, 2 * ETH_ALEN);
		put_unaligned_be16(ETH_P_8021Q, data + 2 * ETH_ALEN);
		put_unaligned_be16(swab16(p->opts2), data + 2 * ETH_ALEN + 2);
	}
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
			c->count.tx_packets++;
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
	if (cmd & CPLUS_RX_VLAN &&
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
	    frame->len + ETH_FCS_LEN > reg16(c, RX_MAX_SIZE)) {
		nicsim_frame_free(frame);
		return;
	}
	if (rx->bytes + frame->len > RTL_RX_FIFO) {
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

	if (reg < RTL_PHY_BASE || reg >= RTL_PHY_BASE + 64)
		return val;

	switch ((reg - RTL_PHY_BASE) / 2) {
	case MII_BMSR:
		return BMSR_ERCAP | BMSR_ANEGCAPABLE | BMSR_ESTATEN |
		       BMSR_10HALF | BMSR_10FULL | BMSR_100HALF | BMSR_100FULL |
		       (mbps ? BMSR_LSTATUS | BMSR_ANEGCOMPLETE : 0);
	case MII_PHYSID1:
		return RTL_PHY_ID1;
	case MII_PHYSID2:
		return RTL_PHY_ID2;
	case MII_LPA:
		/* enough to agree upon the speed there is */
		return !mbps ? 0 : ADVERTISE_CSMA | LPA_LPACK | LPA_10FULL |
				   (mbps > 10 ? LPA_100FULL : 0);
	case MII_STAT1000:
		return mbps == 1000 ? LPA_1000FULL | LPA_1000LOCALRXOK |
				      LPA_1000REMRXOK : 0;
	case MII_ESTATUS:
		return ESTATUS_1000_TFULL | ESTATUS_1000_THALF;
	case RTL_PHYSR:
		return mbps == 1000 ? 0x0028 : mbps == 100 ? 0x0018 : 0x0008;
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

static void rtl_link_change(struct nicsim_port *port, u32 mbps)
{
	struct rtl8168 *c = port->priv;

	c->regs[PHY_STATUS] = !mbps ? 0 : 0x03 | (mbps == 1000 ? 0x10 :
						  mbps == 100 ? 0x08 : 0x04);
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
	put_unaligned_le16(0, c->regs + INTR_MASK);
	put_unaligned_le16(0, c->regs + INTR_STATUS);
	put_unaligned_le16(0, c->regs + INTR_MITIGATE);
	rtl_irq_update(port);
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

	BUILD_BUG_ON(sizeof(dump) != NICSIM_DMA_INLINE);

	if (cmd & COUNTER_RESET) {
		memset(&c->count, 0, sizeof(c->count));
		c->regs[COUNTER_LO] &= ~COUNTER_RESET;
	}
	if (cmd & COUNTER_DUMP)
		nicsim_dma_write(port, iova, &dump, sizeof(dump), TAG_COUNTERS,
				 NULL);
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
	put_unaligned_le32(val | RTL_XID << 20 |
			   (tx_idle(c) ? TX_CONFIG_EMPTY : 0),
			   c->regs + TX_CONFIG);
	c->regs[TX_POLL] = c->tx.f.polled ? TX_POLL_NPQ : 0;
	c->regs[MCU] |= MCU_LINK_LIST_RDY | MCU_TX_EMPTY | MCU_RX_EMPTY;
	if (!tx_idle(c))
		c->regs[MCU] &= ~MCU_TX_EMPTY;
	if (c->rx.bytes)
		c->regs[MCU] &= ~MCU_RX_EMPTY;

	if (off + size > RTL_REGS)
		return 0;
	if (size == 1)
		return c->regs[off];
	if (size == 2)
		return reg16(c, off);
	return reg32(c, off);
}

static void rtl_reg_write(struct nicsim_port *port, u32 off, int size, u32 val)
{
	struct rtl8168 *c = port->priv;
	u32 i, v;

	if (off + size > RTL_REGS)
		return;

	/* write-one-to-clear, and nothing else is in these bytes */
	if (off == INTR_STATUS) {
		put_unaligned_le16(reg16(c, INTR_STATUS) & ~val,
				   c->regs + INTR_STATUS);
		rtl_irq_update(port);
		return;
	}

	for (i = 0, v = val; i < size; i++, v >>= 8)
		c->regs[off + i] = v;

	switch (off) {
	case CHIP_CMD:
		if (val & CMD_RESET)
			rtl_reset(port);
		break;
	case TX_POLL:
		if (val & TX_POLL_NPQ && c->regs[CHIP_CMD] & CMD_TX_ENB)
			rtl_kick(port, true);
		tx_work(port);
		break;
	case INTR_MASK:
		rtl_irq_update(port);
		break;
	case COUNTER_LO:
		rtl_counters(port, val);
		break;
	case GPHY_OCP:
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

	INIT_LIST_HEAD(&c->rx.fifo);
	INIT_LIST_HEAD(&c->rx.busy);
	memcpy(c->regs + MAC0, mac, ETH_ALEN);
	c->eri[0xe0 / 4] = get_unaligned_le32(mac);
	c->eri[0xe4 / 4] = get_unaligned_le16(mac + 4);
	*phy_reg(c, MII_BMCR) = BMCR_ANENABLE | BMCR_FULLDPLX | BMCR_SPEED1000 |
				BMCR_PDOWN;
	*phy_reg(c, MII_ADVERTISE) = ADVERTISE_ALL | ADVERTISE_CSMA;
	*phy_reg(c, MII_CTRL1000) = ADVERTISE_1000FULL;
	return 0;
}

const struct nicsim_ops nicsim_rtl8168h = {
	.name			= "rtl8168h",
	.vendor			= PCI_VENDOR_ID_REALTEK,
	.device			= 0x8168,
	.revision		= 0x15,
	.bar			= 2,
	.bar_size		= RTL_BAR_SIZE,
	.priv_size		= sizeof(struct rtl8168),
	.dma_req_max		= 4096,
	.dma_outstanding	= 2,
	.init			= rtl_init,
	.reg_read		= rtl_reg_read,
	.reg_write		= rtl_reg_write,
	.dma_done		= rtl_dma_done,
	.rx_frame		= rtl_rx_frame,
	.timer			= rtl_timer_due,
	.link_change		= rtl_link_change,
};
