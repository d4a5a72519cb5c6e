// SPDX-License-Identifier: GPL-2.0
/*
 * nicsim: Intel's Gigabit Ethernet controllers as e1000e drives them:
 *
 *	82574	82574L, a PCI Express card of its own, with MSI-X
 *	i219	I219-LM of the Sunrise Point chipset (pch_spt): the MAC is in
 *		the chipset, the PHY on the board
 *
 * Sources, by what they told:
 *	registers, descriptors, interrupts, statistics: Intel 82574 GbE
 *	Controller Family Datasheet, and the driver; what of it the I219 has is
 *	the driver's word, no manual of its MAC is public
 *	outstanding reads in TARC(0) of the I219: the driver's workaround for
 *	pch_spt, commit b10effb92e27
 * Postulated, since no source says:
 *	64 descriptors of a direction on the chip (the thresholds have 6 bits);
 *	four outstanding reads of up to 512 bytes in the 82574; a packet is
 *	taken up when all of its descriptors are on the chip; the descriptor's
 *	status is written back when the packet's data is in the FIFO (that is
 *	what the datasheet says of RS), without waiting for the wire; 32 KiB of
 *	packet buffer in the I219
 *	the reads of the I219, see struct intel_read
 *
 * TX: descriptors are fetched when none of a whole packet is on the chip, or
 * fewer than PTHRESH and at least HTHRESH wait in memory. A context descriptor
 * is remembered, the last one only, for all data descriptors behind it.
 * Checksums are inserted by the context's offsets into what the driver put
 * there. Large sends are cut by MSS and HDRLEN; the header is read once and
 * kept. Packets leave when all of them is in the FIFO.
 * Write-back waits for WTHRESH descriptors, TIDV and TADV for packets that have
 * IDE set.
 *
 * RX: as TX with RXDCTL, RDTR and RADV; extended and packet split descriptors.
 *
 * Interrupts: ICR is cleared by reading, with IAME IMS by IAM. With MSI-X, IVAR
 * says which message a queue's cause sends; it clears what EIAC says in ICR
 * and, with EIAME, what IAM says in IMS. ITR and EITR have 16 bits, of 256 ns.
 *
 * Not modelled: the second queues (the driver leaves them alone), RSS, flow
 * control, half duplex, wake-up, management, EEE, ULP, time stamps, receive
 * errors, the 82574's flash, writing the NVM, errata. The 82574 keeps its
 * context through anything but a reset.
 */
#include <linux/bitfield.h>
#include <linux/etherdevice.h>
#include <linux/if_vlan.h>
#include <linux/ip.h>
#include <linux/moduleparam.h>
#include <linux/sizes.h>
#include <linux/tcp.h>
#include <linux/udp.h>
#include <linux/unaligned.h>
#include <net/checksum.h>
#include "intel.h"

/* one name for the parameters of all files */
#undef MODULE_PARAM_PREFIX
#define MODULE_PARAM_PREFIX "nicsim."

/* registers */
#define REG_CTRL_EXT		0x00018
#define  CTRL_EXT_EE_RST	BIT(13)
#define  CTRL_EXT_EIAME		BIT(24)
#define  CTRL_EXT_IAME		BIT(27)
#define  CTRL_EXT_PBA_CLR	BIT(31)
#define REG_ICR			0x000c0
#define  CAUSE_TXDW		BIT(0)
#define  CAUSE_LSC		BIT(2)
#define  CAUSE_RXDMT0		BIT(4)
#define  CAUSE_RXO		BIT(6)
#define  CAUSE_RXT0		BIT(7)
#define  CAUSE_RXQ0		BIT(20)
#define  CAUSE_TXQ0		BIT(22)
#define  CAUSE_OTHER		BIT(24)
#define  CAUSE_ASSERTED		BIT(31)
#define  CAUSES_OF_QUEUES	GENMASK(23, 20)
#define REG_ITR			0x000c4
#define  ITR_INTERVAL		GENMASK(15, 0)
#define  ITR_UNIT_NS		256
#define REG_ICS			0x000c8
#define REG_IMS			0x000d0
#define REG_IMC			0x000d8
#define REG_EIAC		0x000dc
#define REG_IAM			0x000e0
#define REG_IVAR		0x000e4
#define  IVAR_VALID		BIT(3)
#define  IVAR_VECTOR		GENMASK(2, 0)
#define  IVAR_TX_EVERY		BIT(31)
#define REG_EITR(n)		(0x000e8 + 4 * (n))
#define REG_RCTL		0x00100
#define  RCTL_EN		BIT(1)
#define  RCTL_UPE		BIT(3)
#define  RCTL_MPE		BIT(4)
#define  RCTL_LPE		BIT(5)
#define  RCTL_RDMTS		GENMASK(9, 8)
#define  RCTL_DTYP_PS		BIT(10)
#define  RCTL_BAM		BIT(15)
#define  RCTL_BSIZE		GENMASK(17, 16)
#define  RCTL_VFE		BIT(18)
#define  RCTL_BSEX		BIT(25)
#define  RCTL_SECRC		BIT(26)
#define REG_TCTL		0x00400
#define  TCTL_EN		BIT(1)
#define REG_PBA			0x01000
#define  PBA_RX			GENMASK(15, 0)
#define REG_PSRCTL		0x02170
#define REG_RDBAL		0x02800
#define REG_RDBAH		0x02804
#define REG_RDLEN		0x02808
#define REG_RDH			0x02810
#define REG_RDT			0x02818
#define REG_RDTR		0x02820
#define REG_RXDCTL		0x02828
#define REG_RADV		0x0282c
#define REG_TDBAL		0x03800
#define REG_TDBAH		0x03804
#define REG_TDLEN		0x03808
#define REG_TDH			0x03810
#define REG_TDT			0x03818
#define REG_TIDV		0x03820
#define  DELAY_FPD		BIT(31)
#define  DELAY_TIME		GENMASK(15, 0)
#define  DELAY_UNIT_NS		1024
#define REG_TXDCTL		0x03828
#define  XDCTL_PTHRESH		GENMASK(5, 0)
#define  XDCTL_HTHRESH		GENMASK(13, 8)
#define  XDCTL_WTHRESH		GENMASK(21, 16)
#define  XDCTL_GRAN		BIT(24)
#define REG_TADV		0x0382c
#define REG_TARC0		0x03840
#define  TARC0_READS		GENMASK(29, 28)
#define REG_TDT1		0x03918
#define REG_STATS		0x04000
#define REG_STATS_END		0x04128
#define REG_MPC			0x04010
#define REG_PRC64		0x0405c
#define REG_GPRC		0x04074
#define REG_BPRC		0x04078
#define REG_MPRC		0x0407c
#define REG_GPTC		0x04080
#define REG_GORCL		0x04088
#define REG_GOTCL		0x04090
#define REG_RNBC		0x040a0
#define REG_ROC			0x040ac
#define REG_TORL		0x040c0
#define REG_TOTL		0x040c8
#define REG_TPR			0x040d0
#define REG_TPT			0x040d4
#define REG_PTC64		0x040d8
#define REG_MPTC		0x040f0
#define REG_BPTC		0x040f4
#define REG_TSCTC		0x040f8
#define REG_TSCTFC		0x040fc
#define REG_IAC			0x04100
#define REG_RXCSUM		0x05000
#define  RXCSUM_TUOFL		BIT(9)
#define REG_RFCTL		0x05008
#define  RFCTL_EXTEN		BIT(15)
#define REG_MTA			0x05200
#define REG_RAL			0x05400
#define  RAH_AV			BIT(31)
#define REG_VFTA		0x05600

/* configuration space of the chipset's: descriptors are stuck */
#define CFG_RING_STATUS		0xe4
#define  CFG_FLUSH_REQUIRED	BIT(8)

/* transmit descriptors: lower */
#define TXD_LEN_LEGACY		GENMASK(15, 0)
#define TXD_LEN			GENMASK(19, 0)
#define TXD_DTYP		GENMASK(23, 20)
#define TXD_EOP			BIT(24)
#define TXD_TSE			BIT(26)
#define TXD_IC			BIT(26)		/* of a legacy one */
#define TXD_RS			BIT(27)
#define TXD_DEXT		BIT(29)
#define TXD_VLE			BIT(30)
#define TXD_IDE			BIT(31)
/* upper */
#define TXD_DD			BIT(0)
#define TXD_IXSM		BIT(8)
#define TXD_TXSM		BIT(9)
#define TXD_SPECIAL		GENMASK(31, 16)
/* contexts */
#define CTX_CSS			GENMASK(7, 0)
#define CTX_CSO			GENMASK(15, 8)
#define CTX_CSE			GENMASK(31, 16)
#define CTX_PAYLEN		GENMASK(19, 0)
#define CTX_TCP			BIT(24)
#define CTX_IP			BIT(25)
#define CTX_TSE			BIT(26)
#define CTX_HDRLEN		GENMASK(15, 8)
#define CTX_MSS			GENMASK(31, 16)

/* receive descriptors */
#define RXD_DD			BIT(0)
#define RXD_EOP			BIT(1)
#define RXD_VP			BIT(3)
#define RXD_UDPCS		BIT(4)
#define RXD_TCPCS		BIT(5)
#define RXD_IPCS		BIT(6)
#define RXD_TCPE		BIT(29)
#define RXD_HDRSP		BIT(15)

enum intel_tag {
	TAG_TX_DESC,
	TAG_TX_HDR,
	TAG_TX_DATA,
	TAG_TX_BACK,
	TAG_RX_DESC,
	TAG_RX_DATA,
	TAG_RX_LAST,
	TAG_RX_BACK,
};

enum intel_timer {
	TIMER_TX_SENT,
	TIMER_TIDV,
	TIMER_TADV,
	TIMER_RDTR,
	TIMER_RADV,
	TIMER_REST,
	TIMER_ITR,		/* one a message */
};

/* behind each row how far the throughput is off, rms of the three, Mbit/s */
static const struct intel_read intel_reads[] = {
	{ 64, 860, 2968, true },	/* 5 */
	{ 128, 1647, 2631, true },	/* 16 */
	{ 256, 3445, 439, false },	/* 12 */
	{ 512, 5500, 1160, false },	/* 4 */
	{ 1024, 8023, 1185, false },	/* 16 */
	{ 2048, 10169, 1869, false },	/* 33 */
};

static uint i219_req = 512;
module_param(i219_req, uint, 0444);
MODULE_PARM_DESC(i219_req, "bytes of a read request of the I219, 64 to 2048");

static uint i219_scale = 100;
module_param(i219_scale, uint, 0444);
MODULE_PARM_DESC(i219_scale, "percent of its latency, for other platforms");

static uint i219_fit[3];
static int i219_fit_n;
module_param_array(i219_fit, uint, &i219_fit_n, 0444);
MODULE_PARM_DESC(i219_fit, "latency, rest and drain to fit, instead of a row");

static u32 *reg(struct intel *c, u32 off)
{
	return &c->regs[off / 4];
}

static u64 reg64(struct intel *c, u32 lo)
{
	return (u64)*reg(c, lo + 4) << 32 | *reg(c, lo);
}

static void count64(struct intel *c, u32 lo, u32 add)
{
	u64 sum = reg64(c, lo) + add;

	*reg(c, lo) = sum;
	*reg(c, lo + 4) = sum >> 32;
}

/* ---- interrupts ---- */

/* causes that send a message */
static u32 irq_causes(struct nicsim_port *port, unsigned int vector)
{
	static const u32 cause[] = {
		CAUSE_RXQ0, CAUSE_RXQ0 << 1, CAUSE_TXQ0, CAUSE_TXQ0 << 1,
		CAUSE_OTHER,
	};
	struct intel *c = port->priv;
	u32 ivar = *reg(c, REG_IVAR);
	u32 i, mask = 0;

	if (!nicsim_pci_msix(port))
		return vector ? 0 : ~CAUSE_ASSERTED;
	for (i = 0; i < ARRAY_SIZE(cause); i++, ivar >>= 4)
		if (ivar & IVAR_VALID && (ivar & IVAR_VECTOR) == vector)
			mask |= cause[i];
	return mask;
}

static void irq_update(struct nicsim_port *port)
{
	bool msix = nicsim_pci_msix(port);
	struct intel *c = port->priv;
	u64 now = time_travel_now();
	unsigned int v;

	for (v = 0; v < NICSIM_VECTORS; v++) {
		u32 mask = irq_causes(port, v);
		u32 itr = *reg(c, msix ? REG_EITR(v) : REG_ITR) & ITR_INTERVAL;

		if (!mask)
			continue;
		if (!(c->icr & c->ims & mask)) {
			nicsim_irq_set_vector(port, v, false);
			continue;
		}
		if (port->irq[v].level)
			continue;
		if (now < c->next_irq[v]) {
			nicsim_timer_set_at(port, TIMER_ITR + v,
					    c->next_irq[v]);
			continue;
		}
		c->next_irq[v] = now + (u64)itr * ITR_UNIT_NS;
		++*reg(c, REG_IAC);
		nicsim_irq_set_vector(port, v, true);
		if (!msix)
			continue;
		/* a message, not a level: it can be sent again */
		c->icr &= ~(mask & *reg(c, REG_EIAC));
		if (*reg(c, REG_CTRL_EXT) & CTRL_EXT_EIAME)
			c->ims &= ~(mask & *reg(c, REG_IAM));
		nicsim_irq_set_vector(port, v, false);
	}
}

static void intel_cause(struct nicsim_port *port, u32 bits)
{
	struct intel *c = port->priv;

	if (nicsim_pci_msix(port) && bits & ~CAUSES_OF_QUEUES & c->ims)
		bits |= CAUSE_OTHER;
	c->icr |= bits;
	irq_update(port);
}

static u32 icr_read(struct nicsim_port *port)
{
	struct intel *c = port->priv;
	u32 val = c->icr;

	if (val & c->ims) {
		val |= CAUSE_ASSERTED;
		if (*reg(c, REG_CTRL_EXT) & CTRL_EXT_IAME)
			c->ims &= ~*reg(c, REG_IAM);
	}
	c->icr = 0;
	irq_update(port);
	return val;
}

static u64 delay_ns(struct intel *c, u32 off)
{
	return (u64)(*reg(c, off) & DELAY_TIME) * DELAY_UNIT_NS;
}

/*
 * A packet is done. Its interrupt comes when none has been for the one time, or
 * when the other has passed since the first; 0 is no such limit.
 */
static void delay_start(struct nicsim_port *port, bool tx)
{
	struct intel *c = port->priv;
	u64 abs = delay_ns(c, tx ? REG_TADV : REG_RADV);
	u32 id = tx ? TIMER_TADV : TIMER_RADV;

	nicsim_timer_set(port, tx ? TIMER_TIDV : TIMER_RDTR,
			 delay_ns(c, tx ? REG_TIDV : REG_RDTR));
	if (abs && !port->timers[id].ev.pending)
		nicsim_timer_set(port, id, abs);
}

static void delay_stop(struct nicsim_port *port, bool tx)
{
	nicsim_timer_cancel(port, tx ? TIMER_TIDV : TIMER_RDTR);
	nicsim_timer_cancel(port, tx ? TIMER_TADV : TIMER_RADV);
}

/* ---- descriptors ---- */

/* a threshold of TXDCTL or RXDCTL, in descriptors */
static u32 thresh(u32 dctl, u32 val, u32 size)
{
	return dctl & XDCTL_GRAN ? val : val * 64 / size;
}

static u32 ring_count(struct intel *c, bool tx, u32 size)
{
	return *reg(c, tx ? REG_TDLEN : REG_RDLEN) / size;
}

static u32 rx_desc_size(struct intel *c)
{
	return *reg(c, REG_RCTL) & RCTL_DTYP_PS ? 32 : 16;
}

/* the tail, as an index; the registers count 16 bytes whatever the size */
static u32 ring_tail(struct intel *c, bool tx, u32 size)
{
	return *reg(c, tx ? REG_TDT : REG_RDT) * 16 / size;
}

/* read descriptors ahead; @whole: there is something to do on the chip */
static void desc_fetch(struct nicsim_port *port, bool tx, bool whole)
{
	struct intel *c = port->priv;
	struct intel_fetcher *f = tx ? &c->tx.f : &c->rx.f;
	u32 dctl = *reg(c, tx ? REG_TXDCTL : REG_RXDCTL);
	u32 size = tx ? 16 : rx_desc_size(c);
	u32 count = ring_count(c, tx, size);
	u32 room = INTEL_CACHE - (f->tail - f->head);
	u32 avail, chip = f->tail - f->use;

	if (!count || f->n || !room)
		return;
	avail = (ring_tail(c, tx, size) + count - f->next) % count;
	if (!avail)
		return;
	if (whole &&
	    (chip >= thresh(dctl, FIELD_GET(XDCTL_PTHRESH, dctl), size) ||
	     avail < thresh(dctl, FIELD_GET(XDCTL_HTHRESH, dctl), size)))
		return;

	f->n = min3(avail, room, count - f->next);
	port->dma.reserved = 0;
	nicsim_dma_read(port, reg64(c, tx ? REG_TDBAL : REG_RDBAL) +
			f->next * size, tx ? (void *)c->tx.line : c->rx.line,
			f->n * size, tx ? TAG_TX_DESC : TAG_RX_DESC, NULL);
}

static void desc_fetched(struct intel *c, struct intel_fetcher *f, bool tx,
			 u32 size)
{
	f->next = (f->next + f->n) % ring_count(c, tx, size);
	f->n = 0;
}

/* ---- transmit ---- */

static struct intel_tx *port_tx(struct nicsim_port *port)
{
	return &((struct intel *)port->priv)->tx;
}

static struct intel_pkt *tx_pkt(struct intel_tx *tx)
{
	return &tx->pkt[tx->npkt % ARRAY_SIZE(tx->pkt)];
}

static bool tx_running(struct nicsim_port *port)
{
	struct intel *c = port->priv;

	return *reg(c, REG_TCTL) & TCTL_EN && nicsim_wire_mbps() &&
	       !port->tx_hang;
}

/* what the driver's flush of a stopped ring looks at */
static void tx_stuck_update(struct nicsim_port *port)
{
	struct intel *c = port->priv;
	bool stuck = c->tx.f.back != *reg(c, REG_TDT) &&
		     !(*reg(c, REG_TCTL) & TCTL_EN);

	if (c->chip->pch)
		put_unaligned_le16(stuck ? CFG_FLUSH_REQUIRED : 0,
				   port->cfg + CFG_RING_STATUS);
}

static bool is_context(const struct intel_tx_held *h)
{
	return h->lower & TXD_DEXT && !(h->lower & TXD_DTYP);
}

static u32 desc_len(const struct intel_tx_held *h)
{
	if (is_context(h))
		return 0;
	return h->lower & (h->lower & TXD_DEXT ? TXD_LEN : TXD_LEN_LEGACY);
}

static void tx_fetch(struct nicsim_port *port)
{
	if (tx_running(port))
		desc_fetch(port, true, port_tx(port)->eops);
}

static void tx_fetched(struct nicsim_port *port)
{
	struct intel *c = port->priv;
	struct intel_tx *tx = &c->tx;
	struct intel_fetcher *f = &tx->f;
	u32 i;

	for (i = 0; i < f->n; i++) {
		struct intel_tx_held *h = &tx->held[f->tail++ % INTEL_CACHE];

		h->addr = le64_to_cpu(tx->line[i].addr);
		h->lower = le32_to_cpu(tx->line[i].lower);
		h->upper = le32_to_cpu(tx->line[i].upper);
		h->index = f->next + i;
		if (!is_context(h) && h->lower & TXD_EOP)
			tx->eops++;
	}
	desc_fetched(c, f, true, sizeof(tx->line[0]));
}

/* read the next bytes of the packet, across its fragments */
static u32 tx_read(struct nicsim_port *port, u8 *to, u32 len, u32 tag,
		   void *ctx)
{
	struct intel_tx *tx = port_tx(port);
	u32 reads = 0;

	while (len) {
		struct intel_tx_held *h = &tx->held[tx->cur % INTEL_CACHE];
		u32 n = min(len, desc_len(h) - tx->cur_off);

		if (n && nicsim_dma_read(port, h->addr + tx->cur_off, to, n,
					 tag, ctx))
			reads++;
		to += n;
		len -= n;
		tx->cur_off += n;
		if (tx->cur_off == desc_len(h)) {
			tx->cur++;
			tx->cur_off = 0;
		}
	}
	return reads;
}

static struct intel_seg *tx_seg_add(struct nicsim_port *port, u32 len,
				    bool last)
{
	struct intel_tx *tx = port_tx(port);
	struct intel_seg *s = &tx->seg[tx->seg_tail++ % INTEL_CACHE];

	memset(s, 0, sizeof(*s));
	s->pkt = tx_pkt(tx);
	s->len = len;
	s->off = tx->pos;
	s->last = last;
	if (last) {
		port->tx_descs += s->pkt->ndesc;
		tx->f.use += s->pkt->ndesc;
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

/* give up a packet the chip cannot send; its descriptors go back in turn */
static void tx_drop(struct nicsim_port *port, const char *why)
{
	tx_error(port, why);
	tx_seg_add(port, 0, true);
}

static void context_load(struct nicsim_port *port,
			 const struct intel_tx_held *h)
{
	struct intel *c = port->priv;
	struct intel_context *ctx = &c->tx.ctx;

	ctx->ip = lower_32_bits(h->addr);
	ctx->tu = upper_32_bits(h->addr);
	ctx->cmd = h->lower;
	ctx->seg = h->upper;
	ctx->valid = true;
	if (ctx->cmd & CTX_TSE)
		++*reg(c, REG_TSCTC);
}

static const char *pkt_check(struct intel_pkt *p)
{
	bool tse = p->first_lower & TXD_TSE && p->first_lower & TXD_DEXT;
	bool offload = p->upper & (TXD_IXSM | TXD_TXSM) &&
		       p->first_lower & TXD_DEXT;

	if (p->total < ETH_HLEN)
		return "tx: frame shorter than its header";
	if (!(p->first_lower & TXD_DEXT))
		return p->first_lower & TXD_IC ?
		       "tx: legacy checksum request, not modelled" : NULL;
	if ((tse || offload) && !p->ctx.valid)
		return "tx: offload without a context";
	if ((tse || offload) && tse != !!(p->ctx.cmd & CTX_TSE))
		return "tx: context of another kind than the packet";
	if (!tse)
		return NULL;
	if (!(p->upper & TXD_TXSM) ||
	    (p->ctx.cmd & CTX_IP && !(p->upper & TXD_IXSM)))
		return "tx: TSO without checksums";
	if (FIELD_GET(CTX_PAYLEN, p->ctx.cmd) +
	    FIELD_GET(CTX_HDRLEN, p->ctx.seg) != p->total)
		return "tx: TSO of another length than the context's";
	return NULL;
}

/* take up the next whole packet */
static bool tx_begin(struct nicsim_port *port)
{
	struct intel *c = port->priv;
	struct intel_tx *tx = &c->tx;
	struct intel_pkt *p = tx_pkt(tx);
	const char *bad = NULL;
	bool data = false;
	u32 i;

	if (tx->npkt - tx->npkt_done == ARRAY_SIZE(tx->pkt))
		return false;
	memset(p, 0, sizeof(*p));
	if (!tx->eops) {
		if (tx->f.tail - tx->f.use < INTEL_CACHE)
			return false;
		/* no last descriptor in all the chip can hold */
		p->ndesc = tx->f.tail - tx->f.use;
		tx_drop(port, "tx: packet of too many descriptors");
		return true;
	}

	for (i = tx->f.use; ; i++) {
		struct intel_tx_held *h = &tx->held[i % INTEL_CACHE];

		if (is_context(h)) {
			if (data)
				bad = "tx: context inside a packet";
			context_load(port, h);
			continue;
		}
		if (!data) {
			p->first_lower = h->lower;
			p->upper = h->upper;
		}
		data = true;
		if (!desc_len(h))
			bad = "tx: zero-length descriptor";
		p->total += desc_len(h);
		if (!(h->lower & TXD_EOP))
			continue;
		p->lower = h->lower;
		p->vlan = h->upper;
		break;
	}
	p->ctx = tx->ctx;
	p->ndesc = i + 1 - tx->f.use;
	tx->eops--;
	tx->busy = true;
	tx->hdr_ready = true;
	tx->pos = 0;
	tx->cur = tx->f.use;
	tx->cur_off = 0;

	bad = bad ?: pkt_check(p);
	if (bad) {
		tx_drop(port, bad);
		return true;
	}

	if (p->first_lower & TXD_DEXT && p->first_lower & TXD_TSE) {
		port->tx_lso++;
		tx->hdr_ready = false;
		port->dma.reserved = c->chip->pch;
		tx->hdr_pending = tx_read(port, p->tso.hdr,
					  FIELD_GET(CTX_HDRLEN, p->ctx.seg),
					  TAG_TX_HDR, NULL);
	}
	return true;
}

static void tx_hdr_done(struct nicsim_port *port)
{
	struct intel *c = port->priv;
	struct intel_tx *tx = &c->tx;
	struct intel_pkt *p = tx_pkt(tx);
	u32 hdr_len = FIELD_GET(CTX_HDRLEN, p->ctx.seg);
	const char *bad;

	if (--tx->hdr_pending)
		return;

	bad = nicsim_tso_start(&p->tso, hdr_len,
			       FIELD_GET(CTX_CSS, p->ctx.tu),
			       !(p->ctx.cmd & CTX_IP),
			       FIELD_GET(CTX_MSS, p->ctx.seg), p->total);
	if (!bad && p->tso.hdr_len != hdr_len)
		bad = "tx: TSO with a bad header length";
	if (bad) {
		/* no segments are to be made of it */
		p->tso.mss = 0;
		++*reg(c, REG_TSCTFC);
		tx_drop(port, bad);
		return;
	}
	tx->hdr_ready = true;
}

/* bring the next frame of the packet into the FIFO, if there is room */
static bool tx_next(struct nicsim_port *port)
{
	struct intel *c = port->priv;
	struct intel_tx *tx = &c->tx;
	struct intel_pkt *p = tx_pkt(tx);
	u32 hdr = p->tso.mss ? p->tso.hdr_len : 0;
	u32 left = p->total - hdr - tx->pos;
	u32 len = p->tso.mss ? min(left, p->tso.mss) : left;
	u32 base = p->lower & TXD_VLE ? VLAN_HLEN : 0;
	u32 fifo = c->chip->fifo - (*reg(c, REG_PBA) & PBA_RX) * SZ_1K;
	struct nicsim_frame *frame;
	struct intel_seg *s;

	/* the chipset's: see struct intel_read */
	if (c->chip->pch && (p->tso.mss || c->read.drain)) {
		if (tx->reading)
			return false;
		if (tx->rest_until > time_travel_now()) {
			nicsim_timer_set_at(port, TIMER_REST, tx->rest_until);
			return false;
		}
	}
	if (tx->fifo && tx->fifo + hdr + len > fifo)
		return false;
	if (base + hdr + len > c->chip->frame_max) {
		tx_drop(port, "tx: frame too long");
		return true;
	}
	frame = nicsim_frame_alloc();
	if (!frame) {
		nicsim_error(port, "nicsim: out of frame buffers");
		return false;
	}

	s = tx_seg_add(port, len, len == left);
	s->frame = frame;
	s->room = hdr + len;
	tx->fifo += s->room;
	tx->pos += len;
	tx->reading++;
	port->dma.reserved = c->chip->pch && p->tso.mss;
	s->pending = tx_read(port, frame->data + base + hdr, len, TAG_TX_DATA,
			     s);
	return true;
}

static void tx_complete(struct nicsim_port *port);

static void tx_work(struct nicsim_port *port)
{
	struct intel_tx *tx = port_tx(port);

	while (tx_running(port) && tx->seg_tail - tx->seg_sent < INTEL_CACHE) {
		if (!tx->busy ? !tx_begin(port) :
				!tx->hdr_ready || !tx_next(port))
			break;
	}
	tx_complete(port);
	tx_fetch(port);
}

/* sum the bytes the context names, over what the driver left there */
static const char *tx_insert(const struct intel_context *ctx, u8 *data,
			     u32 len, u32 field, bool tcp)
{
	u32 css = FIELD_GET(CTX_CSS, field), cso = FIELD_GET(CTX_CSO, field);
	u32 end = FIELD_GET(CTX_CSE, field);
	__sum16 sum;

	end = end ? end + 1 : len;
	if (end > len || css >= end || cso + sizeof(sum) > len || cso < css)
		return "tx: checksum request with bad offsets";
	sum = csum_fold(csum_partial(data + css, end - css, 0));
	/* UDP has no sum of zero */
	if (!sum && !tcp)
		sum = CSUM_MANGLED_0;
	memcpy(data + cso, &sum, sizeof(sum));
	return NULL;
}

/* a frame is in the FIFO: insert what the driver left to the chip */
static void tx_finish(struct nicsim_port *port, struct intel_seg *s)
{
	struct intel_pkt *p = s->pkt;
	u32 base = p->lower & TXD_VLE ? VLAN_HLEN : 0;
	u8 *data = s->frame->data;
	const char *bad = NULL;

	s->frame->len = base + s->room;
	if (p->tso.mss) {
		nicsim_tso_segment(&p->tso, data + base, s->off, s->len,
				   s->last);
	} else if (p->first_lower & TXD_DEXT) {
		if (p->upper & TXD_IXSM)
			bad = tx_insert(&p->ctx, data + base, s->room,
					p->ctx.ip, true);
		if (p->upper & TXD_TXSM) {
			port->tx_csum++;
			bad = bad ?: tx_insert(&p->ctx, data + base, s->room,
					       p->ctx.tu,
					       p->ctx.cmd & CTX_TCP);
		}
		if (bad)
			tx_error(port, bad);
	}

	if (base) {
		memmove(data, data + base, 2 * ETH_ALEN);
		put_unaligned_be16(ETH_P_8021Q, data + 2 * ETH_ALEN);
		put_unaligned_be16(FIELD_GET(TXD_SPECIAL, p->vlan),
				   data + 2 * ETH_ALEN + 2);
	}
}

/* counters of frames by size: 64, to 127, 255, 511, 1023, and above */
static u32 size_class(u32 len)
{
	return len <= 64 ? 0 : min_t(u32, ilog2(len) - 5, 5);
}

static void tx_count(struct intel *c, const struct nicsim_frame *f)
{
	u32 len = max_t(u32, f->len, ETH_ZLEN) + ETH_FCS_LEN;

	++*reg(c, REG_GPTC);
	++*reg(c, REG_TPT);
	count64(c, REG_GOTCL, len);
	count64(c, REG_TOTL, len);
	++*reg(c, REG_PTC64 + 4 * size_class(len));
	if (is_broadcast_ether_addr(f->data))
		++*reg(c, REG_BPTC);
	else if (is_multicast_ether_addr(f->data))
		++*reg(c, REG_MPTC);
}

/* tell the driver: write the descriptors back that wait for it */
static void tx_flush(struct nicsim_port *port)
{
	struct intel *c = port->priv;
	struct intel_tx *tx = &c->tx;
	u32 count = ring_count(c, true, sizeof(tx->line[0]));

	for (; tx->held_back; tx->held_back--) {
		struct intel_tx_held *h;
		__le32 upper;

		h = &tx->held[tx->f.head++ % INTEL_CACHE];
		tx->f.back = (h->index + 1) % count;
		if (!(h->lower & TXD_RS))
			continue;
		upper = cpu_to_le32(h->upper | TXD_DD);
		nicsim_dma_write(port, reg64(c, REG_TDBAL) +
				 h->index * sizeof(tx->line[0]) +
				 offsetof(struct intel_tx_desc, upper),
				 &upper, sizeof(upper), TAG_TX_BACK,
				 h->lower & TXD_IDE ? c : NULL);
	}
	tx_stuck_update(port);
}

/* all of a packet is in the FIFO */
static void tx_pkt_done(struct nicsim_port *port, struct intel_pkt *p)
{
	struct intel *c = port->priv;
	u32 dctl = *reg(c, REG_TXDCTL);

	c->tx.npkt_done++;
	c->tx.held_back += p->ndesc;
	if (c->tx.held_back >= thresh(dctl, FIELD_GET(XDCTL_WTHRESH, dctl),
				      sizeof(c->tx.line[0])))
		tx_flush(port);
	else if (p->lower & TXD_IDE)
		delay_start(port, true);
}

/* a descriptor with RS is written back */
static void tx_back_done(struct nicsim_port *port, bool delayed)
{
	struct intel *c = port->priv;
	u32 cause = nicsim_pci_msix(port) ? CAUSE_TXQ0 : CAUSE_TXDW;

	if (cause == CAUSE_TXQ0 && *reg(c, REG_IVAR) & IVAR_TX_EVERY)
		delayed = false;
	if (delayed && delay_ns(c, REG_TIDV))
		delay_start(port, true);
	else
		intel_cause(port, cause);
}

/* frames whose bytes are all there go to the wire, in order */
static void tx_complete(struct nicsim_port *port)
{
	struct intel *c = port->priv;
	struct intel_tx *tx = &c->tx;

	while (tx->seg_ready != tx->seg_tail) {
		struct intel_seg *s = &tx->seg[tx->seg_ready % INTEL_CACHE];

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
		if (s->last)
			tx_pkt_done(port, s->pkt);
		if (tx->seg_ready++ == tx->seg_sent)
			nicsim_timer_set_at(port, TIMER_TX_SENT, s->left);
	}
}

static void tx_data_done(struct nicsim_port *port, struct intel_seg *s)
{
	struct intel *c = port->priv;
	struct intel_tx *tx = &c->tx;

	if (--s->pending)
		return;
	if (!--tx->reading)
		tx->rest_until = time_travel_now() + c->read.rest;
	tx_work(port);
}

/* the last bit of a frame has left */
static void tx_sent(struct nicsim_port *port)
{
	struct intel_tx *tx = port_tx(port);

	while (tx->seg_sent != tx->seg_ready) {
		struct intel_seg *s = &tx->seg[tx->seg_sent % INTEL_CACHE];

		if (s->left > time_travel_now()) {
			nicsim_timer_set_at(port, TIMER_TX_SENT, s->left);
			break;
		}
		tx->fifo -= s->room;
		tx->seg_sent++;
	}
	tx_work(port);
}

/* ---- receive ---- */

static struct intel_rx *port_rx(struct nicsim_port *port)
{
	return &((struct intel *)port->priv)->rx;
}

static bool rx_addr_wanted(struct intel *c, const u8 *dst)
{
	u32 rctl = *reg(c, REG_RCTL), i, shift, hash;

	if (is_broadcast_ether_addr(dst) && rctl & RCTL_BAM)
		return true;
	if (is_multicast_ether_addr(dst)) {
		if (rctl & RCTL_MPE)
			return true;
		/* the upper bits of the last two bytes; MO is always 0 here */
		shift = c->chip->mta == 128 ? 4 : 2;
		hash = (dst[4] >> (8 - shift) | dst[5] << shift) &
		       (c->chip->mta * 32 - 1);
		if (*reg(c, REG_MTA + 4 * (hash / 32)) & BIT(hash % 32))
			return true;
	} else if (rctl & RCTL_UPE) {
		return true;
	}
	for (i = 0; i < c->chip->rar; i++) {
		u8 addr[ETH_ALEN];
		u32 high = *reg(c, REG_RAL + 8 * i + 4);

		put_unaligned_le32(*reg(c, REG_RAL + 8 * i), addr);
		put_unaligned_le16(high, addr + 4);
		if (high & RAH_AV && ether_addr_equal_unaligned(dst, addr))
			return true;
	}
	return false;
}

static bool rx_wanted(struct intel *c, const struct nicsim_frame *f)
{
	u32 rctl = *reg(c, REG_RCTL), vid;

	if (!rx_addr_wanted(c, f->data))
		return false;
	if (!(rctl & RCTL_VFE) ||
	    get_unaligned_be16(f->data + 2 * ETH_ALEN) != ETH_P_8021Q)
		return true;
	vid = get_unaligned_be16(f->data + 2 * ETH_ALEN + 2) & VLAN_VID_MASK;
	return *reg(c, REG_VFTA + 4 * (vid / 32)) & BIT(vid % 32);
}

static void rx_fetch(struct nicsim_port *port)
{
	struct intel *c = port->priv;

	if (*reg(c, REG_RCTL) & RCTL_EN)
		desc_fetch(port, false, c->rx.f.use != c->rx.f.tail);
}

static void rx_fetched(struct nicsim_port *port)
{
	struct intel *c = port->priv;
	struct intel_rx *rx = &c->rx;
	u32 size = rx_desc_size(c), i, j;

	for (i = 0; i < rx->f.n; i++) {
		struct intel_rx_held *h;

		h = &rx->held[rx->f.tail++ % INTEL_CACHE];
		h->index = rx->f.next + i;
		for (j = 0; j < (size == 32 ? 4 : 1); j++)
			h->addr[j] = get_unaligned_le64(rx->line + i * size +
							8 * j);
	}
	desc_fetched(c, &rx->f, false, size);
}

/* status of a received frame; strips the tag if it should */
static u32 rx_status(struct intel *c, struct nicsim_frame *f, u16 *vlan)
{
	u32 status = RXD_DD | RXD_EOP;
	struct nicsim_l4 l;

	if (nicsim_parse(f->data, f->len, &l)) {
		bool l4 = l.proto == IPPROTO_TCP || l.proto == IPPROTO_UDP;

		if (!l.v6)
			status |= RXD_IPCS;
		if (l4 && *reg(c, REG_RXCSUM) & RXCSUM_TUOFL)
			status |= (l.proto == IPPROTO_TCP ? RXD_TCPCS :
							    RXD_UDPCS) |
				  (nicsim_rx_csum_ok(f->data, f->len, &l) ?
				   0 : RXD_TCPE);
	}

	*vlan = 0;
	if (*reg(c, REG_CTRL) & CTRL_VME &&
	    get_unaligned_be16(f->data + 2 * ETH_ALEN) == ETH_P_8021Q) {
		*vlan = get_unaligned_be16(f->data + 2 * ETH_ALEN + 2);
		status |= RXD_VP;
		memmove(f->data + 2 * ETH_ALEN,
			f->data + 2 * ETH_ALEN + VLAN_HLEN,
			f->len - 2 * ETH_ALEN - VLAN_HLEN);
		f->len -= VLAN_HLEN;
	}
	return status;
}

/* bytes of the headers, as packet split knows them; 0 if it does not */
static u32 rx_header(const struct nicsim_frame *f)
{
	struct nicsim_l4 l;

	if (!nicsim_parse(f->data, f->len, &l))
		return 0;
	if (l.proto == IPPROTO_UDP)
		return l.l4 + sizeof(struct udphdr);
	if (l.proto != IPPROTO_TCP || l.l4 + sizeof(struct tcphdr) > f->len)
		return 0;
	return l.l4 + ((struct tcphdr *)(f->data + l.l4))->doff * 4;
}

static u32 rx_buf_size(struct intel *c)
{
	u32 rctl = *reg(c, REG_RCTL), size = FIELD_GET(RCTL_BSIZE, rctl);

	return rctl & RCTL_BSEX ? SZ_32K >> size : SZ_2K >> size;
}

/* give descriptors back that wait for it */
static void rx_flush(struct nicsim_port *port)
{
	struct intel *c = port->priv;
	struct intel_rx *rx = &c->rx;
	u32 size = rx_desc_size(c);

	for (; rx->wait_head != rx->wait_tail; rx->wait_head++) {
		struct intel_rx_back *b;

		b = &rx->back[rx->wait_head % INTEL_CACHE];
		nicsim_dma_write(port, reg64(c, REG_RDBAL) + b->index * size,
				 b->desc, size, TAG_RX_BACK, b);
	}
}

/* write a frame to the buffers of a descriptor; false: larger than they are */
static bool rx_write(struct nicsim_port *port, struct nicsim_frame *f,
		     const struct intel_rx_held *h, u8 *desc)
{
	struct intel *c = port->priv;
	u32 ps = *reg(c, REG_PSRCTL);
	const u32 size[4] = {
		(ps & GENMASK(6, 0)) * 128,
		FIELD_GET(GENMASK(13, 8), ps) * SZ_1K,
		FIELD_GET(GENMASK(21, 16), ps) * SZ_1K,
		FIELD_GET(GENMASK(29, 24), ps) * SZ_1K,
	};
	u32 hdr = rx_header(f), pos = 0, i;

	if (rx_desc_size(c) == 16) {
		if (f->len > rx_buf_size(c))
			return false;
		put_unaligned_le16(f->len, desc + 12);
		nicsim_dma_write(port, h->addr[0], f->data, f->len, TAG_RX_LAST,
				 f);
		return true;
	}

	if (hdr && hdr <= size[0])
		put_unaligned_le16(RXD_HDRSP | hdr, desc + 16);
	else
		hdr = size[0];
	if (f->len > hdr + size[1] + size[2] + size[3])
		return false;
	for (i = 0; pos < f->len; i++) {
		u32 n = min(f->len - pos, i ? size[i] : hdr);

		put_unaligned_le16(n, desc + (i ? 16 + 2 * i : 12));
		nicsim_dma_write(port, h->addr[i], f->data + pos, n,
				 pos + n == f->len ? TAG_RX_LAST : TAG_RX_DATA,
				 f);
		pos += n;
	}
	return true;
}

/* fewer than half, a quarter or an eighth of the ring are left */
static void rx_min_thresh(struct nicsim_port *port)
{
	struct intel *c = port->priv;
	u32 size = rx_desc_size(c), count = ring_count(c, false, size);
	u32 left = (ring_tail(c, false, size) + count - c->rx.f.back) % count;

	if (left == count >> (1 + FIELD_GET(RCTL_RDMTS, *reg(c, REG_RCTL))))
		intel_cause(port, CAUSE_RXDMT0);
}

static void rx_work(struct nicsim_port *port)
{
	struct intel *c = port->priv;
	struct intel_rx *rx = &c->rx;
	u32 dctl = *reg(c, REG_RXDCTL), waits;

	while (rx->f.use != rx->f.tail && !list_empty(&rx->fifo)) {
		struct nicsim_frame *f = list_first_entry(&rx->fifo,
							  struct nicsim_frame,
							  list);
		struct intel_rx_held *h;
		struct intel_rx_back *b;
		u32 status;
		u16 vlan;

		h = &rx->held[rx->f.use++ % INTEL_CACHE];
		b = &rx->back[rx->wait_tail++ % INTEL_CACHE];
		list_move_tail(&f->list, &rx->busy);
		memset(b->desc, 0, sizeof(b->desc));
		b->index = h->index;
		b->frame = f;
		status = rx_status(c, f, &vlan);
		if (!(*reg(c, REG_RCTL) & RCTL_SECRC)) {
			memset(f->data + f->len, 0, ETH_FCS_LEN);
			f->len += ETH_FCS_LEN;
		}
		if (!rx_write(port, f, h, b->desc)) {
			nicsim_error(port, "rx: frame larger than its buffer");
			rx->bytes -= f->room;
		}
		put_unaligned_le32(status, b->desc + 8);
		put_unaligned_le16(vlan, b->desc + 14);

		waits = rx->wait_tail - rx->wait_head;
		if (!delay_ns(c, REG_RDTR) ||
		    waits >= thresh(dctl, FIELD_GET(XDCTL_WTHRESH, dctl),
				    rx_desc_size(c)))
			rx_flush(port);
		if (delay_ns(c, REG_RDTR))
			delay_start(port, false);
	}
	rx_fetch(port);
}

static void rx_irq(struct nicsim_port *port)
{
	delay_stop(port, false);
	rx_flush(port);
	intel_cause(port, nicsim_pci_msix(port) ? CAUSE_RXQ0 : CAUSE_RXT0);
}

static void rx_back_done(struct nicsim_port *port, struct intel_rx_back *b)
{
	struct intel *c = port->priv;
	struct intel_rx *rx = &c->rx;

	list_del(&b->frame->list);
	nicsim_frame_free(b->frame);
	rx->f.head++;
	rx->f.back = (b->index + 1) % ring_count(c, false, rx_desc_size(c));
	rx_min_thresh(port);
	if (!delay_ns(c, REG_RDTR))
		rx_irq(port);
	rx_work(port);
}

static void rx_count(struct intel *c, const struct nicsim_frame *f)
{
	u32 len = f->len + ETH_FCS_LEN;

	++*reg(c, REG_GPRC);
	count64(c, REG_GORCL, len);
	++*reg(c, REG_PRC64 + 4 * size_class(len));
	if (is_broadcast_ether_addr(f->data))
		++*reg(c, REG_BPRC);
	else if (is_multicast_ether_addr(f->data))
		++*reg(c, REG_MPRC);
}

static void intel_rx_frame(struct nicsim_port *port, struct nicsim_frame *f)
{
	struct intel *c = port->priv;
	struct intel_rx *rx = &c->rx;
	u32 rctl = *reg(c, REG_RCTL);

	++*reg(c, REG_TPR);
	count64(c, REG_TORL, f->len + ETH_FCS_LEN);
	if (!(rctl & RCTL_EN) || !rx_wanted(c, f)) {
		nicsim_frame_free(f);
		return;
	}
	if (f->len > (rctl & RCTL_LPE ? c->chip->frame_max :
					VLAN_ETH_FRAME_LEN)) {
		++*reg(c, REG_ROC);
		nicsim_frame_free(f);
		return;
	}
	if (rx->bytes + f->len > (*reg(c, REG_PBA) & PBA_RX) * SZ_1K) {
		++*reg(c, REG_MPC);
		nicsim_frame_free(f);
		intel_cause(port, CAUSE_RXO);
		return;
	}
	if (rx->f.use == rx->f.tail && !rx->f.n &&
	    rx->f.next == ring_tail(c, false, rx_desc_size(c)))
		++*reg(c, REG_RNBC);
	rx_count(c, f);
	rx->bytes += f->len;
	f->room = f->len;
	list_add_tail(&f->list, &rx->fifo);
	rx_work(port);
}

/* ---- the engine's callbacks ---- */

static void intel_dma_done(struct nicsim_port *port, u32 tag, void *ctx)
{
	switch (tag) {
	case TAG_TX_DESC:
		tx_fetched(port);
		tx_work(port);
		break;
	case TAG_TX_HDR:
		tx_hdr_done(port);
		tx_work(port);
		break;
	case TAG_TX_DATA:
		tx_data_done(port, ctx);
		break;
	case TAG_TX_BACK:
		tx_back_done(port, ctx);
		break;
	case TAG_RX_DESC:
		rx_fetched(port);
		rx_work(port);
		break;
	case TAG_RX_LAST:
		port_rx(port)->bytes -= ((struct nicsim_frame *)ctx)->room;
		break;
	case TAG_RX_BACK:
		rx_back_done(port, ctx);
		break;
	}
}

static void intel_timer_due(struct nicsim_port *port, unsigned int id)
{
	switch (id) {
	case TIMER_TX_SENT:
		tx_sent(port);
		break;
	case TIMER_TIDV:
	case TIMER_TADV:
		delay_stop(port, true);
		tx_flush(port);
		intel_cause(port, nicsim_pci_msix(port) ? CAUSE_TXQ0 :
							  CAUSE_TXDW);
		break;
	case TIMER_REST:
		tx_work(port);
		break;
	case TIMER_RDTR:
	case TIMER_RADV:
		rx_irq(port);
		break;
	default:
		irq_update(port);
	}
}

static void intel_link_change(struct nicsim_port *port, u32 mbps)
{
	intel_cause(port, CAUSE_LSC);
	tx_work(port);
}

/* ---- registers ---- */

static void intel_defaults(struct nicsim_port *port)
{
	struct intel *c = port->priv;

	memset32(c->regs, 0, ARRAY_SIZE(c->regs));
	*reg(c, REG_PBA) = c->chip->pch ? 26 : 20;
	*reg(c, REG_TARC0) = c->chip->pch ? FIELD_PREP(TARC0_READS, 3) : 0;
	*reg(c, REG_RAL) = c->nvm[1] << 16 | c->nvm[0];
	*reg(c, REG_RAL + 4) = RAH_AV | c->nvm[2];
	intel_lan_reset(port);
}

/* how a port reads, by TARC(0) in the chipset; the peer is an ideal host's */
static void intel_reads_update(struct nicsim_port *port)
{
	struct intel *c = port->priv;
	u32 reads = FIELD_GET(TARC0_READS, *reg(c, REG_TARC0));

	if (!c->chip->pch)
		return;
	port->dma.outstanding = max(reads, 2U);
	if (port->index)
		return;
	port->dma.req_max = c->read.req;
	port->dma.req_aligned = true;
	port->dma.read_ns = c->read.ns * i219_scale / 100;
}

static void intel_reset(struct nicsim_port *port)
{
	struct intel *c = port->priv;
	struct intel_tx *tx = &c->tx;
	struct intel_rx *rx = &c->rx;
	int i;

	for (i = 0; i < NICSIM_TIMERS; i++)
		nicsim_timer_cancel(port, i);
	nicsim_dma_reset(port);

	/* what is on the wire is gone; what is in the FIFOs is lost */
	for (; tx->seg_ready != tx->seg_tail; tx->seg_ready++)
		nicsim_frame_free(tx->seg[tx->seg_ready % INTEL_CACHE].frame);
	memset(tx, 0, sizeof(*tx));
	port->tx_hang = 0;

	list_splice_init(&rx->busy, &rx->fifo);
	while (!list_empty(&rx->fifo)) {
		struct nicsim_frame *f = list_first_entry(&rx->fifo,
							  struct nicsim_frame,
							  list);

		list_del(&f->list);
		nicsim_frame_free(f);
	}
	memset(rx, 0, sizeof(*rx));
	INIT_LIST_HEAD(&rx->fifo);
	INIT_LIST_HEAD(&rx->busy);

	c->icr = 0;
	c->ims = 0;
	memset(c->next_irq, 0, sizeof(c->next_irq));
	irq_update(port);
	intel_defaults(port);
	intel_reads_update(port);
	tx_stuck_update(port);
}

static u32 intel_status(struct intel *c)
{
	u32 mbps = nicsim_wire_mbps();
	u32 val = STATUS_FD | STATUS_LAN_INIT_DONE;

	if (!(*reg(c, REG_CTRL) & CTRL_GIO_MASTER_DIS))
		val |= STATUS_GIO_MASTER;
	if (mbps)
		val |= STATUS_LU;
	return val | FIELD_PREP(STATUS_SPEED, mbps == 1000 ? 2 :
					      mbps == 100 ? 1 : 0);
}

static u32 intel_reg_read(struct nicsim_port *port, u32 off, int size)
{
	struct intel *c = port->priv;
	u32 val;

	/* but for the flash registers, all are accessed as 32 bits */
	val = *reg(c, off);
	switch (off & ~3U) {
	case REG_STATUS:
		val = intel_status(c);
		break;
	case REG_ICR:
		val = icr_read(port);
		break;
	case REG_IMS:
		val = c->ims;
		break;
	case REG_PBA:
		val = (c->chip->fifo / SZ_1K - (val & PBA_RX)) << 16 |
		      (val & PBA_RX);
		break;
	case REG_TDH:
		val = c->tx.f.back;
		break;
	case REG_RDH:
		val = c->rx.f.back * rx_desc_size(c) / 16;
		break;
	case REG_STATS ... REG_STATS_END:
		*reg(c, off) = 0;
		break;
	}
	val >>= 8 * (off & 3);
	return size == 4 ? val : val & (BIT(8 * size) - 1);
}

static void intel_tail_write(struct nicsim_port *port, bool tx)
{
	struct intel *c = port->priv;
	u32 off = tx ? REG_TDT : REG_RDT;

	if (*reg(c, off) &&
	    *reg(c, off) >= ring_count(c, tx, 16))
		nicsim_error(port, "reg: tail outside the ring");
	if (tx) {
		tx_stuck_update(port);
		tx_work(port);
	} else {
		rx_work(port);
	}
}

static void intel_reg_write(struct nicsim_port *port, u32 off, int size,
			    u32 val)
{
	struct intel *c = port->priv;

	if (size != 4 || off & 3) {
		nicsim_error(port, "reg: write of other than 32 bits");
		return;
	}

	switch (off) {
	case REG_ICR:
		c->icr &= ~val;
		irq_update(port);
		return;
	case REG_ICS:
		intel_cause(port, val);
		return;
	case REG_IMS:
		c->ims |= val;
		irq_update(port);
		return;
	case REG_IMC:
		c->ims &= ~val;
		irq_update(port);
		return;
	case REG_STATUS:
		return;
	}
	if (intel_lan_write(port, off, val))
		return;

	*reg(c, off) = val;
	switch (off) {
	case REG_CTRL:
		*reg(c, off) = val & ~(CTRL_RST | CTRL_PHY_RST);
		if (val & CTRL_RST)
			intel_reset(port);
		if (val & CTRL_PHY_RST)
			intel_phy_reset(port);
		break;
	case REG_CTRL_EXT:
		*reg(c, off) = val & ~(CTRL_EXT_EE_RST | CTRL_EXT_PBA_CLR);
		break;
	case REG_TDH:
		memset(&c->tx.f, 0, sizeof(c->tx.f));
		c->tx.f.next = val;
		c->tx.f.back = val;
		break;
	case REG_RDH:
		memset(&c->rx.f, 0, sizeof(c->rx.f));
		c->rx.f.next = val;
		c->rx.f.back = val;
		break;
	case REG_TDT:
	case REG_RDT:
		intel_tail_write(port, off == REG_TDT);
		break;
	case REG_TDT1:
		if (val)
			nicsim_error(port, "reg: the second queue");
		break;
	case REG_TIDV:
		if (val & DELAY_FPD) {
			*reg(c, off) &= ~DELAY_FPD;
			tx_flush(port);
		}
		break;
	case REG_RDTR:
		if (val & DELAY_FPD) {
			*reg(c, off) &= ~DELAY_FPD;
			rx_flush(port);
		}
		break;
	case REG_TCTL:
		tx_stuck_update(port);
		tx_work(port);
		break;
	case REG_RCTL:
		rx_work(port);
		break;
	case REG_TARC0:
		intel_reads_update(port);
		break;
	case REG_IVAR:
		irq_update(port);
		break;
	}
}

static int intel_init(struct nicsim_port *port)
{
	struct intel *c = port->priv;
	int i;

	c->chip = port->ops->chip;
	if (c->chip->pch && !port->index) {
		for (i = 0; i < ARRAY_SIZE(intel_reads); i++)
			if (intel_reads[i].req == i219_req)
				c->read = intel_reads[i];
		if (i219_fit_n == ARRAY_SIZE(i219_fit)) {
			c->read.ns = i219_fit[0];
			c->read.rest = i219_fit[1];
			c->read.drain = i219_fit[2];
		}
		if (!c->read.req) {
			pr_err("nicsim: the I219 has no requests of %u bytes\n",
			       i219_req);
			return -EINVAL;
		}
	}
	intel_lan_init(port);
	INIT_LIST_HEAD(&c->rx.fifo);
	INIT_LIST_HEAD(&c->rx.busy);
	intel_defaults(port);
	intel_reads_update(port);
	return 0;
}

/* what both have */
#define INTEL_OPS \
	.bus			= &nicsim_pci_bus, \
	.vendor			= PCI_VENDOR_ID_INTEL, \
	.bar			= 0, \
	.bar_size		= INTEL_REGS, \
	.priv_size		= sizeof(struct intel), \
	.init			= intel_init, \
	.reg_read		= intel_reg_read, \
	.reg_write		= intel_reg_write, \
	.dma_done		= intel_dma_done, \
	.rx_frame		= intel_rx_frame, \
	.timer			= intel_timer_due, \
	.link_change		= intel_link_change

static const struct intel_chip chip_82574 = {
	.phy_id			= 0x01410cb1,
	.fifo			= 40 * SZ_1K,
	.frame_max		= 9234 - ETH_FCS_LEN,
	.rar			= 16,
	.mta			= 128,
};

const struct nicsim_ops nicsim_82574 = {
	INTEL_OPS,
	.name			= "82574",
	.device			= 0x10d3,
	.msix_bar		= 3,
	.msix_vectors		= 5,
	.dma_req_max		= 512,
	.dma_outstanding	= 4,
	.chip			= &chip_82574,
};

static const struct intel_chip chip_i219 = {
	.pch			= true,
	.phy_id			= 0x015400a0,
	.fifo			= SZ_32K,
	.frame_max		= 9022 - ETH_FCS_LEN,
	.rar			= 12,
	.mta			= 32,
};

const struct nicsim_ops nicsim_i219 = {
	INTEL_OPS,
	.name			= "i219",
	.device			= 0x15b7,
	.revision		= 0x31,
	.integrated		= true,
	.pcie_gen		= 2,
	.dma_req_max		= 512,
	.dma_outstanding	= 3,
	.chip			= &chip_i219,
};
