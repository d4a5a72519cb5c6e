/* SPDX-License-Identifier: GPL-2.0 */
/*
 * nicsim: simulated network cards for User Mode Linux in virtual time.
 *
 * Two ports of one card model sit back to back on a wire. The unmodified
 * driver of the card probes them on UML's PCI bus or on the platform bus. This
 * header is the cut between the engine, which owns time, wire, bus and DMA, and
 * a device model, which knows registers and descriptors and nothing else:
 *
 *	engine -> device: struct nicsim_ops
 *	device -> engine: nicsim_dma_*(), nicsim_wire_*(), nicsim_irq_set(),
 *			  nicsim_timer_*(), nicsim_error()
 *
 * A device never sees a wall clock, a kernel pointer of the driver's or the
 * other port. Everything that happens at a time is a hardware event (see
 * time_travel_set_hw_event_fn()): device code runs with interrupts disabled,
 * on one CPU, possibly inside any register access or wait of the kernel. It
 * takes no locks, allocates nothing and does not advance time.
 */
#ifndef __UM_NICSIM_H
#define __UM_NICSIM_H

#include <linux/types.h>
#include <linux/list.h>
#include <linux/netdevice.h>
#include <linux/pci.h>
#include <linux/time-internal.h>
#include "../virt-pci.h"

#define NICSIM_PORTS		2
#define NICSIM_TIMERS		12
#define NICSIM_VECTORS		5	/* interrupt messages of a port */
#define NICSIM_ERRORS		32
/* largest frame on the wire without preamble and FCS, VLAN tag included */
#define NICSIM_FRAME_MAX	16384
/* a buffer has room for what receivers append, like the FCS */
#define NICSIM_FRAME_BUF	(NICSIM_FRAME_MAX + 64)
/* two RX FIFOs of 48 KiB full of the smallest frames, and what is under way */
#define NICSIM_FRAMES		2048
#define NICSIM_DMA_REQS		512	/* requests a port can have pending */
#define NICSIM_DMA_INLINE	64	/* bytes a request can carry itself */
#define NICSIM_DMA_SLOTS_MAX	16	/* outstanding reads of an engine */
#define NICSIM_CFG_SIZE		4096

struct nicsim_port;

/**
 * struct nicsim_bus - how a card is attached
 * @plug: makes the ports appear; their drivers probe before it returns
 * @read_max: bytes of a read request at most
 * @master: may the device access memory and send interrupt messages?
 * @irq_wanted: would an interrupt condition that arises now be sent?
 *
 * All but @plug are called by device code.
 */
struct nicsim_bus {
	int (*plug)(void);
	u32 (*read_max)(struct nicsim_port *port);
	bool (*master)(struct nicsim_port *port);
	bool (*irq_wanted)(struct nicsim_port *port);
};

/**
 * struct nicsim_frame - a frame in a FIFO or on the wire
 * @list: for its present owner
 * @len: bytes in @data, from the destination address, without FCS
 * @lost: it will not arrive; a device that sends a bad FCS sets it
 * @when: when its last bit arrives at the other end
 * @room: for its present owner: bytes it takes in a FIFO
 * @data: the bytes
 */
struct nicsim_frame {
	struct list_head list;
	u32 len;
	bool lost;
	u64 when;
	u32 room;
	u8 *data;
};

/**
 * struct nicsim_ops - a device model
 * @name: what nicsim.nic= calls it
 * @bus: how it is attached
 * @vendor: PCI vendor id
 * @device: PCI device id
 * @revision: PCI revision
 * @bar: the memory BAR that holds the registers
 * @bar_size: its size in bytes, a power of two; also on the platform bus
 * @dtbo: platform bus: start of the device tree overlay that describes it
 * @dtbo_end: its end
 * @msix_bar: the memory BAR that holds the MSI-X table, if the device has
 *	@msix_vectors
 * @msix_vectors: messages it can send with MSI-X, up to NICSIM_VECTORS; 0 is
 *	no MSI-X
 * @integrated: a function of the chipset, without a PCI Express link of its
 *	own that could bound read requests
 * @percpu_irq: platform bus: its interrupt is a per-CPU one
 * @sw_tso: its driver cuts large sends itself
 * @priv_size: bytes of the device's own state, zeroed
 * @dma_req_max: bytes the device asks for in one read request at most; the
 *	bus bounds it further
 * @dma_outstanding: read requests the device can have outstanding
 * @chip: the model's own description of the part, if it knows several
 * @pcie_gen: generation of its PCI Express interface, a lane of which carries
 *	twice as much in the second as in the first: 1 (or 0) or 2
 * @init: power-on; sets defaults, returns 0 or a negative error
 * @reg_read: register read of @size 1, 2 or 4 bytes
 * @reg_write: register write
 * @dma_done: a request tagged by the device is complete: for a read the data
 *	is in the buffer, for a write it is in memory. A failed request (see
 *	nicsim_error()) completes as well, a read with zeroes
 * @rx_frame: a frame has arrived whole; the device owns it and gives it back
 *	by nicsim_frame_free()
 * @timer: a timer set by nicsim_timer_set() is due
 * @link_change: the link went up (@mbps) or down (0)
 *
 * @reg_read and @reg_write run in the context of the driver's access, the
 * others in that of a hardware event; interrupts are disabled in all of them.
 */
struct nicsim_ops {
	const char *name;
	const struct nicsim_bus *bus;
	u16 vendor;
	u16 device;
	u8 revision;
	u8 bar;
	u32 bar_size;
	u8 msix_bar;
	u8 msix_vectors;
	bool integrated;
	const u8 *dtbo;
	const u8 *dtbo_end;
	bool percpu_irq;
	bool sw_tso;
	size_t priv_size;
	u32 dma_req_max;
	u32 dma_outstanding;
	const void *chip;
	u32 pcie_gen;
	int (*init)(struct nicsim_port *port);
	u32 (*reg_read)(struct nicsim_port *port, u32 off, int size);
	void (*reg_write)(struct nicsim_port *port, u32 off, int size, u32 val);
	void (*dma_done)(struct nicsim_port *port, u32 tag, void *ctx);
	void (*rx_frame)(struct nicsim_port *port, struct nicsim_frame *frame);
	void (*timer)(struct nicsim_port *port, unsigned int id);
	void (*link_change)(struct nicsim_port *port, u32 mbps);
};

/**
 * struct nicsim_profile - what things cost on a platform
 * @name: what nicsim.profile= calls it
 * @mmio_read_ns: CPU time of a register read: a PCIe round trip
 * @mmio_write_ns: CPU time of a posted register write
 * @irq_ns: CPU time from the interrupt message to the driver's handler
 * @irq_latency_ns: time from the device's interrupt message until the CPU
 *	sees it; no CPU time
 * @dma_read_ns: time from a read request until the first byte of its answer
 * @dma_write_ns: time until a posted write is visible in memory
 * @dma_mbps: bandwidth of the device's PCIe link each way, Mbit/s, for one of
 *	the first generation
 * @skb_ns: CPU time of an skb, as large as it may be, on its way down from
 *	the socket to the queueing discipline
 * @xmit_ns: CPU time of a packet from there through the driver
 * @frag_ns: CPU time of a page fragment of it
 * @seg_ns: CPU time of a segment that the stack cuts, bytes apart
 * @tso_ns: CPU time of a segment that the driver cuts
 * @rx_ns: CPU time of a received packet up to GRO
 * @rx_skb_ns: CPU time of an skb that GRO hands to the stack
 * @copy_ps: CPU time of copying a byte, picoseconds
 * @csum_ps: CPU time of checksumming a byte, picoseconds
 *
 * See profile.c for the values and where they come from.
 */
struct nicsim_profile {
	const char *name;
	u32 mmio_read_ns;
	u32 mmio_write_ns;
	u32 irq_ns;
	u32 irq_latency_ns;
	u32 dma_read_ns;
	u32 dma_write_ns;
	u32 dma_mbps;
	u32 skb_ns;
	u32 xmit_ns;
	u32 frag_ns;
	u32 seg_ns;
	u32 tso_ns;
	u32 rx_ns;
	u32 rx_skb_ns;
	u32 copy_ps;
	u32 csum_ps;
};

struct nicsim_dma_req {
	struct time_travel_event ev;
	struct list_head list;
	struct nicsim_port *port;
	dma_addr_t iova;
	u32 len;
	u32 tag;
	void *ctx;
	void *buf;
	bool write;
	u8 data[NICSIM_DMA_INLINE];
};

/**
 * struct nicsim_dma - the DMA engine of a port
 * @outstanding: read requests it may have outstanding; ops->dma_outstanding
 *	unless the device changes it
 * @reserved: so many of them are not for the next nicsim_dma_read()
 * @req_max: bytes of a read request at most; ops->dma_req_max
 * @req_aligned: no request crosses a multiple of @req_max
 * @read_ns: time until the answer to a request; the profile's dma_read_ns
 * @slot_free: when each outstanding-read slot is free again
 * @link_free: when the PCIe link towards the device is free again
 * @write_done: when the last posted write is in memory
 * @free: unused requests
 * @busy: requests under way
 * @reqs: all requests
 * @reads: read requests sent
 * @writes: writes sent
 * @map_fail: if not 0, counts mappings down and fails the one that makes it 0
 * @map_fail_rx: the same for mappings that the device writes to
 */
struct nicsim_dma {
	u32 outstanding;
	u32 reserved;
	u32 req_max;
	bool req_aligned;
	u32 read_ns;
	u64 slot_free[NICSIM_DMA_SLOTS_MAX];
	u64 link_free;
	u64 write_done;
	struct list_head free;
	struct list_head busy;
	struct nicsim_dma_req *reqs;
	u64 reads;
	u64 writes;
	u32 map_fail;
	u32 map_fail_rx;
};

/**
 * struct nicsim_wire_end - a port's end of the wire
 * @busy_until: when the transmitter is idle again
 * @fly: frames sent and not yet at the other end, oldest first
 * @arrive: event of the oldest of @fly
 * @speeds: speeds the PHY offers, a mask of NICSIM_SPEED_*; 0 is powered down
 * @limit: speeds that are allowed, by the one who tests
 * @unplugged: the cable is pulled at this end
 * @loss_ppm: frames lost on the way, per million
 * @sent: frames handed to the transmitter
 * @lost: frames lost because of @loss_ppm, a bad FCS or a dead link
 */
struct nicsim_wire_end {
	u64 busy_until;
	struct list_head fly;
	struct time_travel_event arrive;
	u32 speeds;
	u32 limit;
	bool unplugged;
	u32 loss_ppm;
	u64 sent;
	u64 lost;
};

#define NICSIM_SPEED_10		BIT(0)
#define NICSIM_SPEED_100	BIT(1)
#define NICSIM_SPEED_1000	BIT(2)
#define NICSIM_SPEED_2500	BIT(3)
#define NICSIM_SPEED_ALL	GENMASK(3, 0)

struct nicsim_timer {
	struct time_travel_event ev;
	struct nicsim_port *port;
	unsigned int id;
};

/**
 * struct nicsim_irq - an interrupt of a port
 * @ev: its delivery to the CPU
 * @port: whose
 * @vector: which of its messages; 0 is also that of MSI and the line
 * @level: the device has a cause pending
 * @masked: the interrupt controller does not pass it on
 * @held: MSI-X: a message waits for its vector to be unmasked
 * @lost: what the present cause sent was lost
 * @lose: so many are to be lost
 * @count: interrupts taken by the CPU
 */
struct nicsim_irq {
	struct time_travel_event ev;
	struct nicsim_port *port;
	unsigned int vector;
	bool level;
	bool masked;
	bool held;
	bool lost;
	u32 lose;
	u64 count;
};

/**
 * struct nicsim_port - a port
 * @ops: its device model
 * @priv: the model's state
 * @profile: what things cost at this port
 * @index: 0 is the device under test, 1 its peer
 * @peer: the other port
 * @dev: the bus's view, NULL before it was found
 * @pci: UML's view, on the PCI bus
 * @devfn: where it is on the bus
 * @present: it was found there
 * @cfg: configuration space
 * @cfg_mask: its writable bits
 * @dma: DMA engine
 * @wire: end of the wire
 * @timers: the model's timers
 * @msix: MSI-X table, as the kernel writes it
 * @irq: interrupt messages, or the line as the first
 * @irq_unmaps: mappings undone in the hard interrupt at hand
 * @irq_unmaps_max: most of them in one
 * @busy_ns: CPU time charged
 * @mmio_reads: register reads
 * @mmio_writes: register writes
 * @tx_skbs: skbs that entered the queueing discipline
 * @tx_packets: packets the driver was given
 * @tx_descs: descriptors the device took up for that, if its model counts them
 * @tx_lso: large sends the device took up
 * @tx_csum: frames it checksummed because it was asked to, but for those
 * @tx_hang: the transmitter reads no descriptors until it is reset
 * @errors: what the model found wrong, by name, with a count
 */
struct nicsim_port {
	const struct nicsim_ops *ops;
	void *priv;
	const struct nicsim_profile *profile;
	unsigned int index;
	struct nicsim_port *peer;
	struct device *dev;
	struct um_pci_device pci;
	unsigned int devfn;
	bool present;
	u8 cfg[NICSIM_CFG_SIZE];
	u8 cfg_mask[NICSIM_CFG_SIZE];
	struct nicsim_dma dma;
	struct nicsim_wire_end wire;
	struct nicsim_timer timers[NICSIM_TIMERS];
	u32 msix[4 * NICSIM_VECTORS];
	struct nicsim_irq irq[NICSIM_VECTORS];
	u32 irq_unmaps;
	u32 irq_unmaps_max;
	u64 busy_ns;
	u64 mmio_reads;
	u64 mmio_writes;
	u64 tx_skbs;
	u64 tx_packets;
	u64 tx_descs;
	u64 tx_lso;
	u64 tx_csum;
	u32 tx_hang;
	struct {
		const char *what;
		u64 count;
	} errors[NICSIM_ERRORS];
};

/* core.c */
extern struct nicsim_port *nicsim_ports[NICSIM_PORTS];

void nicsim_error(struct nicsim_port *port, const char *what);
u32 nicsim_random(void);
u64 nicsim_spread(u64 ns, u32 percent, u32 random);
u64 nicsim_jitter(u64 ns);
void nicsim_timer_set(struct nicsim_port *port, unsigned int id, u64 ns);
void nicsim_timer_set_at(struct nicsim_port *port, unsigned int id, u64 when);
void nicsim_timer_cancel(struct nicsim_port *port, unsigned int id);
u32 nicsim_reg_read(struct nicsim_port *port, u32 off, int size);
void nicsim_reg_write(struct nicsim_port *port, u32 off, int size, u32 val);
void nicsim_irq_set_vector(struct nicsim_port *port, unsigned int vector,
			   bool level);
void nicsim_irq_set(struct nicsim_port *port, bool level);
void nicsim_irq_taken(struct nicsim_irq *irq);
struct nicsim_frame *nicsim_frame_alloc(void);
void nicsim_frame_free(struct nicsim_frame *frame);

/* wire.c */
void nicsim_wire_init(struct nicsim_port *port, u32 speeds);
void nicsim_wire_advertise(struct nicsim_port *port, u32 speeds);
void nicsim_wire_limit(struct nicsim_port *port, u32 speeds, bool unplugged);
u64 nicsim_wire_send(struct nicsim_port *port, struct nicsim_frame *frame);
u32 nicsim_wire_mbps(void);
u64 nicsim_wire_ns(u32 len, u32 mbps);
u32 nicsim_wire_speeds(u32 mbps);

/* pci.c */
extern const struct nicsim_bus nicsim_pci_bus;

bool nicsim_pci_master(struct nicsim_port *port);
bool nicsim_pci_msix(struct nicsim_port *port);

/* platform.c */
extern const struct nicsim_bus nicsim_platform_bus;

/* dma.c */
int nicsim_dma_init(struct nicsim_port *port);
void nicsim_dma_attach(struct device *dev);
bool nicsim_dma_read(struct nicsim_port *port, dma_addr_t iova, void *buf,
		     u32 len, u32 tag, void *ctx);
bool nicsim_dma_write(struct nicsim_port *port, dma_addr_t iova,
		      const void *buf, u32 len, u32 tag, void *ctx);
void nicsim_dma_cancel(struct nicsim_port *port, u32 first, u32 last);
void nicsim_dma_reset(struct nicsim_port *port);
u32 nicsim_dma_live(void);

/* profile.c */
const struct nicsim_profile *nicsim_profile_find(const char *name);
void nicsim_charge(struct nicsim_port *port, u64 ns);
int nicsim_profile_init(void);

/* offload.c */

/**
 * struct nicsim_l4 - where a frame's headers are
 * @l3: offset of the IP header
 * @l4: offset of the transport header
 * @proto: transport protocol, 0 when there is none that can be checksummed
 * @v6: it is IPv6
 */
struct nicsim_l4 {
	u32 l3;
	u32 l4;
	u8 proto;
	bool v6;
};

/**
 * struct nicsim_tso - a large send being cut into segments
 * @hdr: its headers as the driver gave them
 * @hdr_len: their length, link, network and transport
 * @l: where they are
 * @mss: payload bytes of a segment
 */
struct nicsim_tso {
	u8 hdr[256];
	u32 hdr_len;
	struct nicsim_l4 l;
	u32 mss;
};

bool nicsim_parse(const u8 *data, u32 len, struct nicsim_l4 *l);
const char *nicsim_tx_csum(u8 *data, u32 len, u32 l4, bool v6, u8 proto);
bool nicsim_rx_csum_ok(const u8 *data, u32 len, const struct nicsim_l4 *l);
const char *nicsim_tso_start(struct nicsim_tso *t, u32 avail, u32 l4, bool v6,
			     u32 mss, u32 total);
void nicsim_tso_segment(const struct nicsim_tso *t, u8 *data, u32 off,
			u32 len, bool last);

/* device models */
extern const struct nicsim_ops nicsim_rtl8168b;
extern const struct nicsim_ops nicsim_rtl8168c;
extern const struct nicsim_ops nicsim_rtl8168evl;
extern const struct nicsim_ops nicsim_rtl8168h;
extern const struct nicsim_ops nicsim_rtl8125b;
extern const struct nicsim_ops nicsim_82574;
extern const struct nicsim_ops nicsim_i219;
extern const struct nicsim_ops nicsim_neta;
extern const struct nicsim_ops nicsim_neta_xp;
extern const struct nicsim_ops nicsim_neta_370;

/* and the device tree overlays of those on the platform bus */
extern const u8 __dtbo_neta_begin[], __dtbo_neta_end[];
extern const u8 __dtbo_neta_xp_begin[], __dtbo_neta_xp_end[];
extern const u8 __dtbo_neta_370_begin[], __dtbo_neta_370_end[];

#endif /* __UM_NICSIM_H */
