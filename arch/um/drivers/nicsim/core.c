// SPDX-License-Identifier: GPL-2.0
/*
 * nicsim: ports, timers, frame buffers, counted errors and knobs.
 *
 * nicsim.nic=NAME creates two ports of that card, the device under test and
 * its peer: at PCI 0000:00:00.0 and 0000:00:01.0, or on the platform bus at the
 * addresses in platform.c. Costs of nicsim.profile= are charged to the first
 * alone: the peer is an ideal host, so that CPU time and latency are those of
 * the device under test.
 *
 * /sys/kernel/debug/nicsim/<port>/ has
 *	stats	counters, one "name value" a line
 *	errors	what the model found wrong, one "count name" a line; empty is
 *		what a test wants to see
 *	link	0 pulls the cable, 1 plugs it in
 *	speed	highest speed the link can have, Mbit/s: 10, 100, 1000 or 2500
 *	loss_ppm  frames lost on their way from this port, per million
 *	dma_map_fail  n fails the n-th mapping from now for the device to read
 *	dma_map_fail_rx  the same for the device to write
 *	lose_irq  the next n interrupts are lost: the CPU hears nothing until
 *		the device has had no cause pending in between, or the interrupt
 *		controller was told to mask and unmask it
 *	tx_hang	1 keeps the transmitter from reading descriptors until it is
 *		reset
 */
#define pr_fmt(fmt) "nicsim: " fmt

#include <linux/debugfs.h>
#include <linux/init.h>
#include <linux/moduleparam.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include "nicsim.h"

/* one name for the parameters of all files */
#undef MODULE_PARAM_PREFIX
#define MODULE_PARAM_PREFIX "nicsim."

static char *nic;
module_param(nic, charp, 0444);
MODULE_PARM_DESC(nic, "card model to create two ports of (none by default)");

static char *profile = "desktop";
module_param(profile, charp, 0444);
MODULE_PARM_DESC(profile, "platform whose costs the device under test pays");

static ulong seed = 1;
module_param(seed, ulong, 0444);
MODULE_PARM_DESC(seed, "seed of the jitter");

static uint jitter = 10;
module_param(jitter, uint, 0444);
MODULE_PARM_DESC(jitter, "spread of costs and latencies, +- percent (0 to 100)");

static uint speed = 1000;
module_param(speed, uint, 0444);
MODULE_PARM_DESC(speed, "highest speed of the link at first, Mbit/s");

struct nicsim_port *nicsim_ports[NICSIM_PORTS];
static LIST_HEAD(free_frames);

static const struct nicsim_ops *const nicsim_models[] = {
	&nicsim_rtl8168b,
	&nicsim_rtl8168c,
	&nicsim_rtl8168evl,
	&nicsim_rtl8168h,
	&nicsim_rtl8125b,
	&nicsim_82574,
	&nicsim_i219,
#ifdef CONFIG_UML_NICSIM_NETA
	&nicsim_neta,
	&nicsim_neta_xp,
	&nicsim_neta_370,
#endif
	NULL
};

/**
 * nicsim_error - count something that real hardware would choke on
 * @port: where
 * @what: its name; a string constant, the same one for the same fault
 *
 * The first of a name is printed as well. A test reads the counts in debugfs.
 *
 * Context: any. It prints, so a console that is one of the ports (netconsole)
 *	does not work.
 */
void nicsim_error(struct nicsim_port *port, const char *what)
{
	int i;

	for (i = 0; i < NICSIM_ERRORS; i++) {
		if (!port->errors[i].what) {
			port->errors[i].what = what;
			pr_err("port%u: %s\n", port->index, what);
		}
		if (!strcmp(port->errors[i].what, what)) {
			port->errors[i].count++;
			return;
		}
	}
	/* the table is full of other names: do not lose the fact */
	port->errors[NICSIM_ERRORS - 1].count++;
}

/**
 * nicsim_random - next value of the seeded generator (xorshift64*)
 *
 * Context: any.
 * Return: 32 random bits, the same sequence for the same nicsim.seed=.
 */
u32 nicsim_random(void)
{
	static u64 state;

	if (!state)
		state = seed * 0x9e3779b97f4a7c15ULL | 1;
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return (state * 0x2545f4914f6cdd1dULL) >> 32;
}

/**
 * nicsim_spread - a value of a uniform distribution
 * @ns: its mean
 * @percent: its half width, percent of the mean, 0 to 100
 * @random: 32 random bits
 *
 * Context: any.
 * Return: the value.
 */
u64 nicsim_spread(u64 ns, u32 percent, u32 random)
{
	u64 span = ns * percent / 50;

	return span ? ns - span / 2 + ((span + 1) * random >> 32) : ns;
}

/**
 * nicsim_jitter - spread a cost or latency
 * @ns: its mean
 *
 * Real machines never take the same time twice, and a simulation that does
 * measures one phase of two periodic processes instead of a distribution.
 *
 * Context: any.
 * Return: @ns, uniformly spread by +- nicsim.jitter= percent.
 */
u64 nicsim_jitter(u64 ns)
{
	return jitter && ns ? nicsim_spread(ns, min(jitter, 100U),
					    nicsim_random()) : ns;
}

static void nicsim_timer_due(struct time_travel_event *ev)
{
	struct nicsim_timer *t = container_of(ev, struct nicsim_timer, ev);

	t->port->ops->timer(t->port, t->id);
}

/**
 * nicsim_timer_set_at - set or move a timer of the device
 * @port: the port
 * @id: which, below NICSIM_TIMERS; comes back in ops->timer()
 * @when: when it is due, in ns of time_travel_now(); not in the past
 *
 * Context: device code.
 */
void nicsim_timer_set_at(struct nicsim_port *port, unsigned int id, u64 when)
{
	u64 now = time_travel_now();

	nicsim_timer_cancel(port, id);
	time_travel_add_event_rel(&port->timers[id].ev,
				  when > now ? when - now : 0);
}

/**
 * nicsim_timer_set - set or move a timer of the device
 * @port: the port
 * @id: which, below NICSIM_TIMERS; comes back in ops->timer()
 * @ns: in how long it is due
 *
 * Context: device code.
 */
void nicsim_timer_set(struct nicsim_port *port, unsigned int id, u64 ns)
{
	nicsim_timer_set_at(port, id, time_travel_now() + ns);
}

/**
 * nicsim_timer_cancel - stop a timer of the device, if it runs
 * @port: the port
 * @id: which
 *
 * Context: device code.
 */
void nicsim_timer_cancel(struct nicsim_port *port, unsigned int id)
{
	time_travel_del_event(&port->timers[id].ev);
}

/**
 * nicsim_frame_alloc - take a frame buffer
 *
 * Context: device code.
 * Return: a frame of length 0, or NULL when all are in FIFOs or on the wire.
 */
struct nicsim_frame *nicsim_frame_alloc(void)
{
	struct nicsim_frame *f;

	f = list_first_entry_or_null(&free_frames, struct nicsim_frame, list);
	if (!f)
		return NULL;
	list_del(&f->list);
	f->len = 0;
	f->lost = false;
	return f;
}

/**
 * nicsim_frame_free - give a frame buffer back
 * @frame: the buffer; a NULL pointer is fine
 *
 * Context: device code.
 */
void nicsim_frame_free(struct nicsim_frame *frame)
{
	if (frame)
		list_add(&frame->list, &free_frames);
}

/**
 * nicsim_reg_read - the CPU reads a register
 * @port: the port
 * @off: its offset
 * @size: its size in bytes
 *
 * Context: that of the driver's access.
 * Return: the value; all ones when there is none.
 */
u32 nicsim_reg_read(struct nicsim_port *port, u32 off, int size)
{
	unsigned long flags;
	u32 val;

	if (size > 4 || off + size > port->ops->bar_size) {
		nicsim_error(port, "mmio: read outside the registers");
		return U32_MAX;
	}

	port->mmio_reads++;
	/*
	 * The CPU waits for the round trip. The device answers at its end, so
	 * that all it did until then is in the value.
	 */
	nicsim_charge(port, port->profile->mmio_read_ns);
	local_irq_save(flags);
	val = port->ops->reg_read(port, off, size);
	local_irq_restore(flags);

	return val;
}

/**
 * nicsim_reg_write - the CPU writes a register
 * @port: the port
 * @off: its offset
 * @size: its size in bytes
 * @val: the value
 *
 * Context: that of the driver's access.
 */
void nicsim_reg_write(struct nicsim_port *port, u32 off, int size, u32 val)
{
	unsigned long flags;

	if (size > 4 || off + size > port->ops->bar_size) {
		nicsim_error(port, "mmio: write outside the registers");
		return;
	}

	port->mmio_writes++;
	nicsim_charge(port, port->profile->mmio_write_ns);
	local_irq_save(flags);
	port->ops->reg_write(port, off, size, val);
	local_irq_restore(flags);
}

/**
 * nicsim_irq_set_vector - the device's interrupt condition of one message
 * @port: the port
 * @vector: which
 * @level: is there an enabled cause pending?
 *
 * A rising edge sends the message, which never overtakes the data written
 * before it; a line follows @level.
 *
 * Context: device code.
 */
void nicsim_irq_set_vector(struct nicsim_port *port, unsigned int vector,
			   bool level)
{
	struct nicsim_irq *irq = &port->irq[vector];
	u64 now = time_travel_now();
	bool rise = level && !irq->level;

	irq->level = level;
	if (!level)
		irq->lost = false;
	if (!rise || !port->ops->bus->irq_wanted(port))
		return;
	if (port->irq[0].lose) {
		port->irq[0].lose--;
		irq->lost = true;
		return;
	}

	time_travel_add_event_rel(&irq->ev,
				  max(port->dma.write_done, now) - now +
				  nicsim_jitter(port->profile->irq_latency_ns));
}

/**
 * nicsim_irq_set - the interrupt condition of a device with one message
 * @port: the port
 * @level: does it have an enabled cause pending?
 *
 * Context: device code.
 */
void nicsim_irq_set(struct nicsim_port *port, bool level)
{
	nicsim_irq_set_vector(port, 0, level);
}

/**
 * nicsim_irq_taken - the CPU takes an interrupt
 * @irq: which
 *
 * Context: hard interrupt, before the driver's handler is called.
 */
void nicsim_irq_taken(struct nicsim_irq *irq)
{
	irq->count++;
	irq->port->irq_unmaps = 0;
	nicsim_charge(irq->port, irq->port->profile->irq_ns);
}

static int __init nicsim_frames_init(void)
{
	struct nicsim_frame *f = kcalloc(NICSIM_FRAMES, sizeof(*f), GFP_KERNEL);
	u8 *data = kvcalloc(NICSIM_FRAMES, NICSIM_FRAME_BUF, GFP_KERNEL);
	int i;

	if (!f || !data) {
		kfree(f);
		kvfree(data);
		return -ENOMEM;
	}
	for (i = 0; i < NICSIM_FRAMES; i++) {
		f[i].data = data + i * NICSIM_FRAME_BUF;
		list_add_tail(&f[i].list, &free_frames);
	}
	return 0;
}

static int stats_show(struct seq_file *m, void *v)
{
	struct nicsim_port *port = m->private;
	u64 irqs = 0;
	int i;

	for (i = 0; i < NICSIM_VECTORS; i++)
		irqs += port->irq[i].count;

	seq_printf(m, "now_ns %llu\n", time_travel_now());
	seq_printf(m, "busy_ns %llu\n", port->busy_ns);
	seq_printf(m, "irqs %llu\n", irqs);
	seq_printf(m, "irq_unmaps_max %u\n", port->irq_unmaps_max);
	seq_printf(m, "mmio_reads %llu\n", port->mmio_reads);
	seq_printf(m, "mmio_writes %llu\n", port->mmio_writes);
	seq_printf(m, "dma_reads %llu\n", port->dma.reads);
	seq_printf(m, "dma_writes %llu\n", port->dma.writes);
	seq_printf(m, "dma_live %u\n", nicsim_dma_live());
	seq_printf(m, "tx_skbs %llu\n", port->tx_skbs);
	seq_printf(m, "tx_packets %llu\n", port->tx_packets);
	if (port->tx_descs)
		seq_printf(m, "tx_descs %llu\n", port->tx_descs);
	seq_printf(m, "tx_lso %llu\n", port->tx_lso);
	seq_printf(m, "tx_csum %llu\n", port->tx_csum);
	seq_printf(m, "wire_sent %llu\n", port->wire.sent);
	seq_printf(m, "wire_lost %llu\n", port->wire.lost);
	return 0;
}

DEFINE_SHOW_ATTRIBUTE(stats);

static int errors_show(struct seq_file *m, void *v)
{
	struct nicsim_port *port = m->private;
	int i;

	for (i = 0; i < NICSIM_ERRORS && port->errors[i].what; i++)
		seq_printf(m, "%llu %s\n", port->errors[i].count,
			   port->errors[i].what);
	return 0;
}

DEFINE_SHOW_ATTRIBUTE(errors);

static int link_get(void *data, u64 *val)
{
	*val = !((struct nicsim_port *)data)->wire.unplugged;
	return 0;
}

static int link_set(void *data, u64 val)
{
	struct nicsim_port *port = data;
	unsigned long flags;

	local_irq_save(flags);
	nicsim_wire_limit(port, port->wire.limit, !val);
	local_irq_restore(flags);
	return 0;
}

DEFINE_DEBUGFS_ATTRIBUTE(link_fops, link_get, link_set, "%llu\n");

static int speed_get(void *data, u64 *val)
{
	u32 limit = ((struct nicsim_port *)data)->wire.limit;

	*val = limit & NICSIM_SPEED_2500 ? 2500 :
	       limit & NICSIM_SPEED_1000 ? 1000 :
	       limit & NICSIM_SPEED_100 ? 100 : 10;
	return 0;
}

static int speed_set(void *data, u64 val)
{
	struct nicsim_port *port = data;
	u32 mask = nicsim_wire_speeds(val);
	unsigned long flags;

	if (!mask)
		return -EINVAL;

	local_irq_save(flags);
	nicsim_wire_limit(port, mask, port->wire.unplugged);
	local_irq_restore(flags);
	return 0;
}

DEFINE_DEBUGFS_ATTRIBUTE(speed_fops, speed_get, speed_set, "%llu\n");

static void __init nicsim_debugfs(struct nicsim_port *port, struct dentry *root)
{
	struct dentry *dir;
	char name[8];

	snprintf(name, sizeof(name), "port%u", port->index);
	dir = debugfs_create_dir(name, root);
	debugfs_create_file("stats", 0444, dir, port, &stats_fops);
	debugfs_create_file("errors", 0444, dir, port, &errors_fops);
	debugfs_create_file_unsafe("link", 0644, dir, port, &link_fops);
	debugfs_create_file_unsafe("speed", 0644, dir, port, &speed_fops);
	debugfs_create_u32("loss_ppm", 0644, dir, &port->wire.loss_ppm);
	debugfs_create_u32("dma_map_fail", 0644, dir, &port->dma.map_fail);
	debugfs_create_u32("dma_map_fail_rx", 0644, dir,
			   &port->dma.map_fail_rx);
	debugfs_create_u32("lose_irq", 0644, dir, &port->irq[0].lose);
	debugfs_create_u32("tx_hang", 0644, dir, &port->tx_hang);
}

static struct nicsim_port * __init
nicsim_port_create(const struct nicsim_ops *ops, unsigned int index,
		   const struct nicsim_profile *prof)
{
	struct nicsim_port *port = kzalloc(sizeof(*port), GFP_KERNEL);
	int i;

	if (!port)
		return NULL;

	port->ops = ops;
	port->index = index;
	port->profile = prof;
	port->priv = kvzalloc(ops->priv_size, GFP_KERNEL);
	if (!port->priv)
		goto err;

	for (i = 0; i < NICSIM_TIMERS; i++) {
		port->timers[i].port = port;
		port->timers[i].id = i;
		time_travel_set_hw_event_fn(&port->timers[i].ev,
					    nicsim_timer_due);
	}

	/* one end is enough to bound the link */
	nicsim_wire_init(port, index ? NICSIM_SPEED_ALL :
				       nicsim_wire_speeds(speed));
	if (nicsim_dma_init(port))
		goto err;

	return port;
err:
	kvfree(port->priv);
	kfree(port);
	return NULL;
}

static int __init nicsim_init(void)
{
	const struct nicsim_profile *ideal = nicsim_profile_find("ideal");
	const struct nicsim_profile *prof = nicsim_profile_find(profile);
	const struct nicsim_ops *ops = NULL;
	struct dentry *root;
	int i, err;

	if (!nic)
		return 0;

	for (i = 0; nicsim_models[i]; i++)
		if (!strcmp(nicsim_models[i]->name, nic))
			ops = nicsim_models[i];
	if (!ops || !prof) {
		pr_err("no %s named '%s'\n", ops ? "profile" : "nic",
		       ops ? profile : nic);
		return -EINVAL;
	}
	if (!nicsim_wire_speeds(speed)) {
		pr_err("no link of %u Mbit/s\n", speed);
		return -EINVAL;
	}
	if (time_travel_mode != TT_MODE_INFCPU &&
	    time_travel_mode != TT_MODE_EXTERNAL) {
		pr_err("needs time-travel=inf-cpu\n");
		return -EINVAL;
	}

	err = nicsim_frames_init();
	if (err)
		return err;

	for (i = 0; i < NICSIM_PORTS; i++) {
		nicsim_ports[i] = nicsim_port_create(ops, i, i ? ideal : prof);
		if (!nicsim_ports[i])
			return -ENOMEM;
	}
	nicsim_ports[0]->peer = nicsim_ports[1];
	nicsim_ports[1]->peer = nicsim_ports[0];

	err = nicsim_profile_init();
	if (err)
		return err;

	root = debugfs_create_dir("nicsim", NULL);
	for (i = 0; i < NICSIM_PORTS; i++) {
		nicsim_debugfs(nicsim_ports[i], root);
		err = ops->init(nicsim_ports[i]);
		if (err)
			return err;
	}
	/* a driver may bring its port up as soon as it is there */
	err = ops->bus->plug();
	if (err) {
		pr_err("%s: cannot plug the ports: %d\n", ops->name, err);
		return err;
	}

	pr_info("two ports of %s, profile %s, seed %lu, jitter %u%%\n",
		ops->name, prof->name, seed, jitter);
	return 0;
}

/* after the PCI bridge and the drivers, which are device_initcalls */
late_initcall(nicsim_init);
