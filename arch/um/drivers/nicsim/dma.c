// SPDX-License-Identifier: GPL-2.0
/*
 * nicsim: DMA, the driver's side and the device's.
 *
 * Driver's side: dma_map_ops of the ports' devices that act as an IOMMU. Every
 * mapping gets an I/O address of its own, and a device that reads or writes
 * outside a live mapping, or against its direction, is caught and counted.
 * With a 64-bit mask an address is never used again (its upper half is a
 * generation); with 32 bits it is reused as late as possible.
 *
 * Device's side: a read/write engine. A read is split into requests of at most
 * the device's request size and what the bus allows, and at multiples of that
 * size where the device wants it; each takes one of the device's slots for
 * outstanding requests until its completion has come over the link. Writes are
 * posted and stay in order. Requests are served in the order they were issued,
 * so when one completes is known when it is issued: one event a read or write,
 * however many requests it takes.
 */
#define pr_fmt(fmt) "nicsim: " fmt

#include <linux/dma-map-ops.h>
#include <linux/slab.h>
#include "nicsim.h"

#define MAP_SHIFT	17			/* bytes a mapping can span */
#define MAP_SLOTS	BIT(32 - MAP_SHIFT)
#define MAP_SPAN	BIT(MAP_SHIFT)

/*
 * A mapping; @size is 0 while the slot is unused. Changed by the kernel under
 * map_lock, read by device events: they never interrupt a change, since no
 * change takes simulated time.
 */
struct nicsim_map {
	void *vaddr;
	dma_addr_t iova;
	u32 size;
	u32 gen;
	u8 dir;
	u8 port;
};

static struct nicsim_map *maps;
static u16 *map_free;		/* unused slots, first used first */
static u32 map_head, map_tail;	/* take from, give to */
static u32 map_live;
static DEFINE_SPINLOCK(map_lock);

/**
 * nicsim_dma_live - count of live mappings, for leak checks
 *
 * Context: any.
 * Return: mappings and coherent allocations of both ports.
 */
u32 nicsim_dma_live(void)
{
	return map_live;
}

static struct nicsim_port *dev_port(struct device *dev)
{
	int i;

	for (i = 0; i < NICSIM_PORTS; i++)
		if (nicsim_ports[i] && nicsim_ports[i]->dev == dev)
			return nicsim_ports[i];
	return NULL;
}

static dma_addr_t map_add(struct device *dev, phys_addr_t phys, size_t size,
			  enum dma_data_direction dir, u64 mask)
{
	struct nicsim_port *port = dev_port(dev);
	u32 off = offset_in_page(phys);
	struct nicsim_map *m;
	unsigned long flags;
	u16 slot;

	if (WARN_ON(!port) || !size || size + off > MAP_SPAN)
		return DMA_MAPPING_ERROR;

	/* fault injection: the n-th mapping from now, each way apart */
	if (dir == DMA_TO_DEVICE && port->dma.map_fail &&
	    !--port->dma.map_fail)
		return DMA_MAPPING_ERROR;
	if (dir == DMA_FROM_DEVICE && port->dma.map_fail_rx &&
	    !--port->dma.map_fail_rx)
		return DMA_MAPPING_ERROR;

	spin_lock_irqsave(&map_lock, flags);
	if (map_live >= MAP_SLOTS - 1) {
		spin_unlock_irqrestore(&map_lock, flags);
		return DMA_MAPPING_ERROR;
	}
	slot = map_free[map_head++ % MAP_SLOTS];
	map_live++;
	m = &maps[slot];
	m->iova = ((dma_addr_t)slot << MAP_SHIFT) + off;
	if (mask == DMA_BIT_MASK(64))
		m->iova |= (dma_addr_t)m->gen << 32;
	m->vaddr = phys_to_virt(phys);
	m->size = size;
	m->dir = dir;
	m->port = port->index;
	spin_unlock_irqrestore(&map_lock, flags);

	return m->iova;
}

static struct nicsim_map *map_find(struct nicsim_port *port, dma_addr_t iova,
				   u32 len)
{
	struct nicsim_map *m = &maps[(u32)iova >> MAP_SHIFT];

	if (!m->size || m->port != port->index || iova < m->iova ||
	    iova - m->iova + len > m->size)
		return NULL;
	return m;
}

static void map_del(struct device *dev, dma_addr_t iova, size_t size,
		    enum dma_data_direction dir)
{
	struct nicsim_port *port = dev_port(dev);
	struct nicsim_map *m;
	unsigned long flags;

	if (WARN_ON(!port))
		return;

	spin_lock_irqsave(&map_lock, flags);
	m = map_find(port, iova, size);
	if (!m || m->iova != iova || m->size != size || m->dir != dir) {
		nicsim_error(port, "iommu: unmap of something not mapped so");
	} else {
		m->size = 0;
		m->gen++;
		map_free[map_tail++ % MAP_SLOTS] = m - maps;
		map_live--;
		/* how much work is done in the hard interrupt? */
		if (in_hardirq())
			port->irq_unmaps_max = max(port->irq_unmaps_max,
						   ++port->irq_unmaps);
	}
	spin_unlock_irqrestore(&map_lock, flags);
}

static void *dma_op_alloc(struct device *dev, size_t size, dma_addr_t *iova,
			  gfp_t gfp, unsigned long attrs)
{
	void *vaddr = alloc_pages_exact(size, gfp | __GFP_ZERO);

	if (!vaddr)
		return NULL;

	*iova = map_add(dev, virt_to_phys(vaddr), size, DMA_BIDIRECTIONAL,
			dev->coherent_dma_mask);
	if (*iova == DMA_MAPPING_ERROR) {
		free_pages_exact(vaddr, size);
		return NULL;
	}
	return vaddr;
}

static void dma_op_free(struct device *dev, size_t size, void *vaddr,
			dma_addr_t iova, unsigned long attrs)
{
	map_del(dev, iova, size, DMA_BIDIRECTIONAL);
	free_pages_exact(vaddr, size);
}

static dma_addr_t dma_op_map_phys(struct device *dev, phys_addr_t phys,
				  size_t size, enum dma_data_direction dir,
				  unsigned long attrs)
{
	return map_add(dev, phys, size, dir, dma_get_mask(dev));
}

static void dma_op_unmap_phys(struct device *dev, dma_addr_t iova, size_t size,
			      enum dma_data_direction dir, unsigned long attrs)
{
	map_del(dev, iova, size, dir);
}

static void dma_op_unmap_sg(struct device *dev, struct scatterlist *sgl,
			    int nents, enum dma_data_direction dir,
			    unsigned long attrs)
{
	struct scatterlist *sg;
	int i;

	for_each_sg(sgl, sg, nents, i)
		map_del(dev, sg_dma_address(sg), sg_dma_len(sg), dir);
}

static int dma_op_map_sg(struct device *dev, struct scatterlist *sgl,
			 int nents, enum dma_data_direction dir,
			 unsigned long attrs)
{
	struct scatterlist *sg;
	int i;

	for_each_sg(sgl, sg, nents, i) {
		sg_dma_address(sg) = map_add(dev, sg_phys(sg), sg->length, dir,
					     dma_get_mask(dev));
		sg_dma_len(sg) = sg->length;
		if (sg_dma_address(sg) == DMA_MAPPING_ERROR) {
			dma_op_unmap_sg(dev, sgl, i, dir, attrs);
			return -EIO;
		}
	}
	return nents;
}

/* what a driver syncs must be mapped; memory is coherent, nothing else to do */
static void dma_op_sync(struct device *dev, dma_addr_t iova, size_t size,
			enum dma_data_direction dir)
{
	struct nicsim_port *port = dev_port(dev);

	if (port && !map_find(port, iova, size))
		nicsim_error(port, "iommu: sync of something not mapped");
}

/* what it gives to the device in a mapping it keeps, a driver has copied */
static void dma_op_sync_for_device(struct device *dev, dma_addr_t iova,
				   size_t size, enum dma_data_direction dir)
{
	struct nicsim_port *port = dev_port(dev);

	dma_op_sync(dev, iova, size, dir);
	if (port && dir == DMA_TO_DEVICE)
		nicsim_charge(port, (u64)size * port->profile->copy_ps / 1000);
}

static int dma_op_supported(struct device *dev, u64 mask)
{
	return mask >= DMA_BIT_MASK(32);
}

static const struct dma_map_ops nicsim_dma_ops = {
	.alloc			= dma_op_alloc,
	.free			= dma_op_free,
	.map_phys		= dma_op_map_phys,
	.unmap_phys		= dma_op_unmap_phys,
	.map_sg			= dma_op_map_sg,
	.unmap_sg		= dma_op_unmap_sg,
	.sync_single_for_cpu	= dma_op_sync,
	.sync_single_for_device	= dma_op_sync_for_device,
	.dma_supported		= dma_op_supported,
	.alloc_pages_op		= dma_common_alloc_pages,
	.free_pages		= dma_common_free_pages,
};

/**
 * nicsim_dma_attach - put a device behind the IOMMU
 * @dev: the port's device, before its driver probes
 *
 * Context: process.
 */
void nicsim_dma_attach(struct device *dev)
{
	set_dma_ops(dev, &nicsim_dma_ops);
}

static void dma_complete(struct time_travel_event *ev)
{
	struct nicsim_dma_req *req = container_of(ev, struct nicsim_dma_req,
						  ev);
	struct nicsim_port *port = req->port;
	struct nicsim_map *m = NULL;
	u32 tag = req->tag;
	void *ctx = req->ctx;

	if (port->ops->bus->master(port)) {
		m = map_find(port, req->iova, req->len);
		if (!m) {
			nicsim_error(port, req->write ?
				     "iommu: device wrote outside a mapping" :
				     "iommu: device read outside a mapping");
		} else if (m->dir == (req->write ? DMA_TO_DEVICE :
						   DMA_FROM_DEVICE)) {
			nicsim_error(port,
				     "iommu: access against the direction");
			m = NULL;
		}
	}

	if (req->write) {
		if (m)
			memcpy(m->vaddr + (req->iova - m->iova), req->buf,
			       req->len);
	} else if (m) {
		memcpy(req->buf, m->vaddr + (req->iova - m->iova), req->len);
	} else {
		memset(req->buf, 0, req->len);
	}

	list_move(&req->list, &port->dma.free);
	port->ops->dma_done(port, tag, ctx);
}

static struct nicsim_dma_req *dma_req(struct nicsim_port *port, dma_addr_t iova,
				      u32 len, u32 tag, void *ctx)
{
	struct nicsim_dma_req *req;

	req = list_first_entry_or_null(&port->dma.free, struct nicsim_dma_req,
				       list);
	if (!len) {
		nicsim_error(port, "dma: request of no length");
		return NULL;
	}
	/* a model bounds what it has outstanding by its FIFOs and caches */
	if (WARN_ON_ONCE(!req)) {
		nicsim_error(port, "dma: too many requests outstanding");
		return NULL;
	}
	list_move_tail(&req->list, &port->dma.busy);
	req->iova = iova;
	req->len = len;
	req->tag = tag;
	req->ctx = ctx;
	return req;
}

/* a function of the chipset has no link: its latency has all in it */
static u64 link_ns(struct nicsim_port *port, u32 len)
{
	if (port->ops->integrated)
		return 0;
	return len * 8000ULL /
	       (port->profile->dma_mbps * max(port->ops->pcie_gen, 1U));
}

/**
 * nicsim_dma_read - read memory
 * @port: the port
 * @iova: I/O address, as the driver gave it
 * @buf: where to; must stay until completion
 * @len: bytes, at least 1
 * @tag: comes back in ops->dma_done()
 * @ctx: comes back as well
 *
 * Context: device code.
 * Return: false when the request was refused and will not complete.
 */
bool nicsim_dma_read(struct nicsim_port *port, dma_addr_t iova, void *buf,
		     u32 len, u32 tag, void *ctx)
{
	struct nicsim_dma_req *req = dma_req(port, iova, len, tag, ctx);
	struct nicsim_dma *dma = &port->dma;
	u32 chunk = min(dma->req_max, port->ops->bus->read_max(port));
	u64 now = time_travel_now(), done = now;
	u32 pos, n;

	if (!req)
		return false;

	for (pos = 0; pos < len; pos += n) {
		int i, slot = 0;

		n = chunk;
		if (dma->req_aligned)
			n -= (iova + pos) % chunk;
		n = min(n, len - pos);
		/* those that are reserved are the last */
		for (i = 1; i < dma->outstanding - dma->reserved; i++)
			if (dma->slot_free[i] < dma->slot_free[slot])
				slot = i;
		done = max(now, dma->slot_free[slot]) +
		       nicsim_jitter(dma->read_ns);
		done = max(done, dma->link_free) + link_ns(port, n);
		dma->link_free = done;
		dma->slot_free[slot] = done;
		dma->reads++;
	}

	req->buf = buf;
	req->write = false;
	time_travel_add_event_rel(&req->ev, done - now);
	return true;
}

/**
 * nicsim_dma_write - write memory
 * @port: the port
 * @iova: I/O address, as the driver gave it
 * @buf: the data; up to NICSIM_DMA_INLINE bytes are copied at once, more must
 *	stay until completion
 * @len: bytes, at least 1
 * @tag: comes back in ops->dma_done()
 * @ctx: comes back as well
 *
 * Context: device code.
 * Return: false when the request was refused and will not complete.
 */
bool nicsim_dma_write(struct nicsim_port *port, dma_addr_t iova,
		      const void *buf, u32 len, u32 tag, void *ctx)
{
	struct nicsim_dma_req *req = dma_req(port, iova, len, tag, ctx);
	struct nicsim_dma *dma = &port->dma;
	u64 now = time_travel_now();

	if (!req)
		return false;

	dma->write_done = max(dma->write_done,
			      now + nicsim_jitter(port->profile->dma_write_ns));
	dma->write_done += link_ns(port, len);
	dma->writes++;

	req->buf = (void *)buf;
	if (len <= NICSIM_DMA_INLINE)
		req->buf = memcpy(req->data, buf, len);
	req->write = true;
	time_travel_add_event_rel(&req->ev, dma->write_done - now);
	return true;
}

/**
 * nicsim_dma_cancel - forget some requests of a port
 * @port: the port
 * @first: first tag of those
 * @last: last tag of those
 *
 * As nicsim_dma_reset(), for one direction of a device; the time that they
 * take on the bus stays taken.
 *
 * Context: device code.
 */
void nicsim_dma_cancel(struct nicsim_port *port, u32 first, u32 last)
{
	struct nicsim_dma *dma = &port->dma;
	struct nicsim_dma_req *req, *tmp;

	list_for_each_entry_safe(req, tmp, &dma->busy, list) {
		if (req->tag < first || req->tag > last)
			continue;
		time_travel_del_event(&req->ev);
		list_move(&req->list, &dma->free);
	}
}

/**
 * nicsim_dma_reset - forget all requests of a port
 * @port: the port
 *
 * Posted writes are recalled as well, which a real card cannot do: a driver
 * that frees memory right after a reset is not caught by it.
 *
 * Context: device code; no request completes after it.
 */
void nicsim_dma_reset(struct nicsim_port *port)
{
	struct nicsim_dma *dma = &port->dma;

	nicsim_dma_cancel(port, 0, U32_MAX);
	memset(dma->slot_free, 0, sizeof(dma->slot_free));
	dma->link_free = 0;
	dma->write_done = 0;
}

/**
 * nicsim_dma_init - initialise a port's engine and, once, the IOMMU
 * @port: the port
 *
 * Context: process, before any device code runs.
 * Return: 0 or a negative error.
 */
int nicsim_dma_init(struct nicsim_port *port)
{
	struct nicsim_dma *dma = &port->dma;
	u32 i;

	INIT_LIST_HEAD(&dma->free);
	INIT_LIST_HEAD(&dma->busy);
	if (WARN_ON(port->ops->dma_outstanding > NICSIM_DMA_SLOTS_MAX))
		return -EINVAL;
	dma->outstanding = port->ops->dma_outstanding;
	dma->req_max = port->ops->dma_req_max;
	dma->read_ns = port->profile->dma_read_ns;
	dma->reqs = kcalloc(NICSIM_DMA_REQS, sizeof(*dma->reqs), GFP_KERNEL);
	if (!dma->reqs)
		return -ENOMEM;
	for (i = 0; i < NICSIM_DMA_REQS; i++) {
		dma->reqs[i].port = port;
		time_travel_set_hw_event_fn(&dma->reqs[i].ev, dma_complete);
		list_add_tail(&dma->reqs[i].list, &dma->free);
	}

	if (maps)
		return 0;
	maps = kvcalloc(MAP_SLOTS, sizeof(*maps), GFP_KERNEL);
	map_free = kvcalloc(MAP_SLOTS, sizeof(*map_free), GFP_KERNEL);
	if (!maps || !map_free)
		return -ENOMEM;
	/* slot 0 stays unused: address 0 is a driver's mistake */
	for (i = 1; i < MAP_SLOTS; i++) {
		map_free[map_tail++] = i;
		/* so that an address without its upper half is none */
		maps[i].gen = 1;
	}
	return 0;
}
