// SPDX-License-Identifier: GPL-2.0
/*
 * nicsim: the ports as platform devices that a device tree describes.
 *
 * A card that is part of a system on a chip brings a device tree overlay with
 * its ports, their clock and an interrupt controller. It is applied when the
 * card is asked for, so that the tree, and any driver that looks at it, is left
 * alone otherwise. Ports are told apart by the address of their registers.
 *
 * The interrupt controller has a level-triggered line a port and a mask.
 */
#define pr_fmt(fmt) "nicsim: " fmt

#include <linux/irq.h>
#include <linux/irqdomain.h>
#include <linux/logic_iomem.h>
#include <linux/of.h>
#include <linux/of_platform.h>
#include <linux/platform_device.h>
#include "nicsim.h"

/* where the overlays have the registers of the first port */
#define PLATFORM_BASE		0xd0070000

static struct irq_domain *platform_domain;

static unsigned long mmio_read(void *priv, unsigned int off, int size)
{
	return nicsim_reg_read(priv, off, size);
}

static void mmio_write(void *priv, unsigned int off, int size,
		       unsigned long val)
{
	nicsim_reg_write(priv, off, size, val);
}

static const struct logic_iomem_ops mmio_ops = {
	.read	= mmio_read,
	.write	= mmio_write,
};

static long mmio_map(unsigned long off, size_t size,
		     const struct logic_iomem_ops **ops, void **priv)
{
	u32 span = nicsim_ports[0]->ops->bar_size;

	/* a port in one piece */
	if (off % span + size > span)
		return -EINVAL;
	*ops = &mmio_ops;
	*priv = nicsim_ports[off / span];
	return off % span;
}

static const struct logic_iomem_region_ops mmio_region_ops = {
	.map	= mmio_map,
};

static struct resource mmio_resource = {
	.name	= "nicsim",
	.flags	= IORESOURCE_MEM,
};

static u32 platform_read_max(struct nicsim_port *port)
{
	return U32_MAX;
}

static bool platform_always(struct nicsim_port *port)
{
	return true;
}

/* an ordinary event: it interrupts the CPU, once that has interrupts enabled */
static void irq_deliver(struct time_travel_event *ev)
{
	struct nicsim_irq *irq = container_of(ev, struct nicsim_irq, ev);
	struct nicsim_port *port = irq->port;

	if (!irq->level || irq->masked || irq->lost)
		return;
	nicsim_irq_taken(irq);
	generic_handle_domain_irq(platform_domain, port->index);
	/* still asserted: again when the CPU enables it */
	if (irq->level && !irq->masked)
		time_travel_add_event_rel(ev, NSEC_PER_USEC);
}

static void irq_mask(struct irq_data *d)
{
	nicsim_ports[d->hwirq]->irq[0].masked = true;
}

static void irq_unmask(struct irq_data *d)
{
	struct nicsim_port *port = nicsim_ports[d->hwirq];
	u64 ns = nicsim_jitter(port->profile->irq_latency_ns);

	port->irq[0].masked = false;
	port->irq[0].lost = false;
	if (port->irq[0].level)
		time_travel_add_event_rel(&port->irq[0].ev, ns);
}

static struct irq_chip platform_chip = {
	.name		= "nicsim",
	.irq_mask	= irq_mask,
	.irq_unmask	= irq_unmask,
};

static int domain_map(struct irq_domain *d, unsigned int virq,
		      irq_hw_number_t hwirq)
{
	if (nicsim_ports[hwirq]->ops->percpu_irq) {
		irq_set_percpu_devid(virq);
		irq_set_chip_and_handler(virq, &platform_chip,
					 handle_percpu_devid_irq);
	} else {
		irq_set_chip_and_handler(virq, &platform_chip,
					 handle_level_irq);
	}
	return 0;
}

static const struct irq_domain_ops domain_ops = {
	.map	= domain_map,
	.xlate	= irq_domain_xlate_onecell,
};

/* a port's device appears, before its driver probes */
static int platform_notify(struct notifier_block *nb, unsigned long action,
			   void *data)
{
	struct platform_device *pdev = to_platform_device(data);
	struct resource *r = platform_get_resource(pdev, IORESOURCE_MEM, 0);
	struct nicsim_port *port;

	if (!r || !resource_contains(&mmio_resource, r))
		return NOTIFY_DONE;
	port = nicsim_ports[(r->start - mmio_resource.start) /
			    nicsim_ports[0]->ops->bar_size];
	if (action == BUS_NOTIFY_ADD_DEVICE) {
		port->dev = &pdev->dev;
		nicsim_dma_attach(port->dev);
	} else if (action == BUS_NOTIFY_REMOVED_DEVICE) {
		port->dev = NULL;
	}
	return NOTIFY_DONE;
}

static struct notifier_block platform_nb = {
	.notifier_call = platform_notify,
};

static int platform_plug(void)
{
	const struct nicsim_ops *ops = nicsim_ports[0]->ops;
	struct device_node *bus, *pic;
	int err, id, i;

	for (i = 0; i < NICSIM_PORTS; i++) {
		struct nicsim_irq *irq = &nicsim_ports[i]->irq[0];

		irq->port = nicsim_ports[i];
		irq->masked = true;
		time_travel_set_event_fn(&irq->ev, irq_deliver);
	}

	mmio_resource.start = PLATFORM_BASE;
	mmio_resource.end = PLATFORM_BASE + NICSIM_PORTS * ops->bar_size - 1;
	err = logic_iomem_add_region(&mmio_resource, &mmio_region_ops);
	if (err)
		return err;
	err = bus_register_notifier(&platform_bus_type, &platform_nb);
	if (err)
		return err;
	err = of_overlay_fdt_apply(ops->dtbo, ops->dtbo_end - ops->dtbo, &id,
				   NULL);
	if (err)
		return err;

	bus = of_find_node_by_path("/nicsim");
	pic = of_get_child_by_name(bus, "interrupt-controller");
	if (!pic)
		return -ENODEV;
	/* it is no device, and what it serves need not wait for its driver */
	of_node_set_flag(pic, OF_POPULATED);
	platform_domain = irq_domain_create_linear(of_fwnode_handle(pic),
						   NICSIM_PORTS, &domain_ops,
						   NULL);
	if (!platform_domain)
		return -ENOMEM;
	err = of_platform_populate(bus, NULL, NULL, NULL);
	of_node_put(pic);
	of_node_put(bus);
	if (err)
		return err;

	for (i = 0; i < NICSIM_PORTS; i++)
		if (!nicsim_ports[i]->dev)
			return -ENODEV;
	return 0;
}

const struct nicsim_bus nicsim_platform_bus = {
	.plug		= platform_plug,
	.read_max	= platform_read_max,
	.master		= platform_always,
	.irq_wanted	= platform_always,
};
