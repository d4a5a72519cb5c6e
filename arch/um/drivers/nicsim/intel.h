/* SPDX-License-Identifier: GPL-2.0 */
/*
 * nicsim: Intel's Gigabit Ethernet controllers that e1000e drives, what their
 * two files share: intel.c has the MAC, intel_lan.c PHY, NVM and management.
 */
#ifndef __UM_NICSIM_INTEL_H
#define __UM_NICSIM_INTEL_H

#include "nicsim.h"

#define INTEL_REGS		SZ_128K
#define INTEL_NVM_WORDS		64
/* descriptors of a direction that the chip holds; thresholds have 6 bits */
#define INTEL_CACHE		64

/* registers that both files know */
#define REG_CTRL		0x00000
#define  CTRL_GIO_MASTER_DIS	BIT(2)
#define  CTRL_RST		BIT(26)
#define  CTRL_VME		BIT(30)
#define  CTRL_PHY_RST		BIT(31)
#define REG_STATUS		0x00008
#define  STATUS_FD		BIT(0)
#define  STATUS_LU		BIT(1)
#define  STATUS_SPEED		GENMASK(7, 6)
#define  STATUS_LAN_INIT_DONE	BIT(9)
#define  STATUS_GIO_MASTER	BIT(19)

/**
 * struct intel_chip - what one part has that the other has not
 * @pch: a function of the chipset, with a PHY of its own chip: its NVM is in
 *	the chipset's flash, its PHY has pages, TARC(0) says how many reads can
 *	be outstanding, and large sends are read as struct intel_read says
 * @phy_id: identification of the PHY
 * @fifo: bytes of packet buffer, shared by both directions as PBA says
 * @frame_max: longest frame, VLAN tag included, FCS not
 * @rar: exact addresses of the receive filter
 * @mta: 32-bit registers of its multicast table
 */
struct intel_chip {
	bool pch;
	u32 phy_id;
	u32 fifo;
	u32 frame_max;
	u32 rar;
	u32 mta;
};

/**
 * struct intel_read - how the chipset's MAC reads memory
 * @req: bytes of a read request at most; it does not cross a multiple of them
 * @ns: from the request until its answer is there
 * @rest: ns from the last answer to a frame's reads until the next one's begin
 * @drain: that holds for all frames, not only for segments of large sends
 *
 * Report R1 has throughput of an I219-LM with three and with two outstanding
 * reads, with TSO and without. What in the part makes it so is not known. All
 * that was found to fit has in common that a request slot is not available to
 * the data of a large send, and that the reads of one of its segments are
 * complete before those of the next begin. Both are postulated, and so are
 * alignment, rest, and drain. For each size of request the numbers are those
 * that fit the report's figures best (scripts/calibrate of the queue). The
 * sizes make up a family, none of which is known to be the right one.
 */
struct intel_read {
	u32 req;
	u32 ns;
	u32 rest;
	bool drain;
};

/* a transmit descriptor, of any kind */
struct intel_tx_desc {
	__le64 addr;
	__le32 lower;
	__le32 upper;
};

/* a descriptor the chip holds */
struct intel_tx_held {
	u64 addr;
	u32 lower;
	u32 upper;
	u32 index;		/* in the driver's ring */
};

struct intel_rx_held {
	u64 addr[4];
	u32 index;
};

/* descriptors read ahead of their use, a ring of INTEL_CACHE */
struct intel_fetcher {
	u32 head;		/* of the cache: next to be given back */
	u32 use;		/* of the cache: next to be taken up */
	u32 tail;		/* of the cache: where the next one read goes */
	u32 next;		/* index of the next one to read */
	u32 n;			/* descriptors of the read under way, or 0 */
	u32 back;		/* index of the next one to be given back */
};

/* the offload context: what the last context descriptor said */
struct intel_context {
	u32 ip;			/* IPCSS, IPCSO, IPCSE */
	u32 tu;			/* TUCSS, TUCSO, TUCSE */
	u32 cmd;		/* PAYLEN, DTYP, TUCMD */
	u32 seg;		/* STA, HDRLEN, MSS */
	bool valid;
};

/* a packet being read or sent */
struct intel_pkt {
	struct intel_context ctx;
	u32 ndesc;
	u32 lower;		/* of its last descriptor: commands */
	u32 first_lower;
	u32 upper;		/* of its first: options; of its last: VLAN */
	u32 vlan;
	u32 total;		/* bytes */
	struct nicsim_tso tso;	/* mss is 0 when it is no large send */
};

/* a frame in the TX FIFO, in order */
struct intel_seg {
	struct nicsim_frame *frame;	/* NULL: a packet given up */
	struct intel_pkt *pkt;
	u32 off;
	u32 len;
	u32 room;
	u32 pending;		/* reads under way */
	u64 left;		/* when its last bit has left */
	bool last;
};

struct intel_tx {
	struct intel_fetcher f;
	struct intel_tx_desc line[INTEL_CACHE];
	struct intel_tx_held held[INTEL_CACHE];
	struct intel_context ctx;
	u32 eops;		/* whole packets in held[use..tail) */
	struct intel_pkt pkt[2 * INTEL_CACHE];
	u32 npkt;		/* packets taken up */
	u32 npkt_done;		/* packets given back */
	bool busy;		/* a packet is being read */
	bool hdr_ready;
	u32 hdr_pending;
	u32 pos;		/* bytes of its payload asked for */
	u32 cur;		/* read cursor: descriptor, and offset in it */
	u32 cur_off;
	u32 fifo;		/* bytes occupied */
	u32 reading;		/* frames whose reads are under way */
	u64 rest_until;		/* no reads of a frame begin before */
	u32 held_back;		/* descriptors done, not yet written back */
	struct intel_seg seg[INTEL_CACHE];
	u32 seg_sent;		/* oldest on the wire */
	u32 seg_ready;		/* oldest not complete */
	u32 seg_tail;		/* next to be used */
};

/* what is to be written to a receive descriptor */
struct intel_rx_back {
	u32 index;
	struct nicsim_frame *frame;
	u8 desc[32];
};

struct intel_rx {
	struct intel_fetcher f;
	u8 line[INTEL_CACHE * 32];
	struct intel_rx_held held[INTEL_CACHE];
	struct intel_rx_back back[INTEL_CACHE];
	struct list_head fifo;	/* frames without a descriptor */
	struct list_head busy;	/* frames being written */
	u32 bytes;
	u32 wait_head;		/* of back[]: written, not given back */
	u32 wait_tail;
};

/**
 * struct intel - state of a port
 * @chip: what it is
 * @read: how the chipset's reads memory
 * @regs: registers that keep what is written, and those derived
 * @icr: interrupt causes pending
 * @ims: those enabled
 * @next_irq: when each message may be sent again, as ITR or EITR has it
 * @phy: registers of the PHY, by page and number; page 0 is the basic ones
 * @phy_page: page selected
 * @emi: registers behind the PHY's EMI address and data
 * @kmrn: registers behind KMRNCTRLSTA
 * @nvm: the words of the NVM
 * @tx: transmitter
 * @rx: receiver
 */
struct intel {
	const struct intel_chip *chip;
	struct intel_read read;
	u32 regs[INTEL_REGS / 4];
	u32 icr;
	u32 ims;
	u64 next_irq[NICSIM_VECTORS];
	u16 phy[0x8000];
	u16 phy_page;
	u16 emi[0x10000];
	u16 kmrn[32];
	u16 nvm[INTEL_NVM_WORDS];
	struct intel_tx tx;
	struct intel_rx rx;
};

/* intel_lan.c */
void intel_lan_init(struct nicsim_port *port);
void intel_lan_reset(struct nicsim_port *port);
bool intel_lan_write(struct nicsim_port *port, u32 off, u32 val);
void intel_phy_reset(struct nicsim_port *port);

#endif /* __UM_NICSIM_INTEL_H */
