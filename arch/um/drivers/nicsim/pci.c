// SPDX-License-Identifier: GPL-2.0
/*
 * nicsim: the ports as PCI functions: configuration space, register BAR, MSI-X,
 * MSI and INTx.
 *
 * Configuration space is an array with a mask of writable bits; capabilities
 * are power management, MSI (unless nicsim.intx=1), PCI Express (unless it is a
 * function of the chipset) and MSI-X (if the device has it and nicsim.msix=1,
 * the default). The BARs of the registers and of the MSI-X table are offered,
 * UML has no I/O ports.
 */
#define pr_fmt(fmt) "nicsim: " fmt

#include <linux/bitfield.h>
#include <linux/interrupt.h>
#include <linux/irq.h>
#include <linux/moduleparam.h>
#include <linux/sizes.h>
#include <linux/unaligned.h>
#include "nicsim.h"

/* one name for the parameters of all files */
#undef MODULE_PARAM_PREFIX
#define MODULE_PARAM_PREFIX "nicsim."

#define CAP_PM		0x40
#define CAP_MSI		0x50
#define CAP_EXP		0x70
#define CAP_MSIX	0xb0

/* the MSI-X table is at the start of its BAR, the pending bits are behind it */
#define MSIX_BAR_SIZE	SZ_16K
#define MSIX_PBA	SZ_8K

static bool intx;
module_param(intx, bool, 0444);
MODULE_PARM_DESC(intx, "offer no MSI, only the legacy interrupt line");

static bool msix = true;
module_param(msix, bool, 0444);
MODULE_PARM_DESC(msix, "offer MSI-X where the card has it (with intx=0)");

static struct nicsim_port *registering;

static unsigned long cfg_read(struct um_pci_device *pci, unsigned int off,
			      int size)
{
	struct nicsim_port *port = container_of(pci, struct nicsim_port, pci);

	if (off + size > NICSIM_CFG_SIZE)
		return ULONG_MAX;
	if (size == 1)
		return port->cfg[off];
	if (size == 2)
		return get_unaligned_le16(port->cfg + off);
	return get_unaligned_le32(port->cfg + off);
}

static void cfg_write(struct um_pci_device *pci, unsigned int off, int size,
		      unsigned long val)
{
	struct nicsim_port *port = container_of(pci, struct nicsim_port, pci);
	int i;

	if (off + size > NICSIM_CFG_SIZE)
		return;
	for (i = 0; i < size; i++, val >>= 8) {
		u8 mask = port->cfg_mask[off + i];

		port->cfg[off + i] = (port->cfg[off + i] & ~mask) |
				     (val & mask);
	}
	/* the line may have been enabled with a cause pending */
	if (off == PCI_COMMAND && port->irq[0].level)
		time_travel_add_event_rel(&port->irq[0].ev, NSEC_PER_USEC);
}

/* the Max_Read_Request_Size in force */
static u32 pci_mrrs(struct nicsim_port *port)
{
	u16 ctl;

	if (port->ops->integrated)
		return U32_MAX;
	ctl = get_unaligned_le16(port->cfg + CAP_EXP + PCI_EXP_DEVCTL);

	return 128U << FIELD_GET(PCI_EXP_DEVCTL_READRQ, ctl);
}

/**
 * nicsim_pci_master - may the device access memory and send messages?
 * @port: the port
 *
 * Context: any.
 * Return: the Bus Master Enable bit.
 */
bool nicsim_pci_master(struct nicsim_port *port)
{
	return port->cfg[PCI_COMMAND] & PCI_COMMAND_MASTER;
}

static bool has_msix(struct nicsim_port *port)
{
	return msix && !intx && port->ops->msix_vectors;
}

/**
 * nicsim_pci_msix - does the device send MSI-X messages?
 * @port: the port
 *
 * Context: any.
 * Return: true when MSI-X is enabled.
 */
bool nicsim_pci_msix(struct nicsim_port *port)
{
	return has_msix(port) &&
	       get_unaligned_le16(port->cfg + CAP_MSIX + PCI_MSIX_FLAGS) &
	       PCI_MSIX_FLAGS_ENABLE;
}

static bool msix_masked(struct nicsim_port *port, unsigned int vector)
{
	return get_unaligned_le16(port->cfg + CAP_MSIX + PCI_MSIX_FLAGS) &
	       PCI_MSIX_FLAGS_MASKALL ||
	       port->msix[4 * vector + 3] & PCI_MSIX_ENTRY_CTRL_MASKBIT;
}

static u32 msix_read(struct nicsim_port *port, unsigned int off)
{
	u32 i, pending = 0;

	if (off < 16U * port->ops->msix_vectors)
		return port->msix[off / 4];
	if (off != MSIX_PBA)
		return 0;
	for (i = 0; i < port->ops->msix_vectors; i++)
		pending |= port->irq[i].held << i;
	return pending;
}

static void msix_write(struct nicsim_port *port, unsigned int off, u32 val)
{
	struct nicsim_irq *irq = &port->irq[off / 16];

	if (off >= 16U * port->ops->msix_vectors)
		return;
	port->msix[off / 4] = val;
	if (irq->held && !msix_masked(port, off / 16)) {
		irq->held = false;
		time_travel_add_event_rel(&irq->ev, NSEC_PER_USEC);
	}
}

static unsigned long bar_read(struct um_pci_device *pci, int bar,
			      unsigned int off, int size)
{
	struct nicsim_port *port = container_of(pci, struct nicsim_port, pci);

	if (has_msix(port) && bar == port->ops->msix_bar && size == 4)
		return msix_read(port, off);
	if (bar != port->ops->bar) {
		nicsim_error(port, "mmio: read outside the registers");
		return ULONG_MAX;
	}
	return nicsim_reg_read(port, off, size);
}

static void bar_write(struct um_pci_device *pci, int bar, unsigned int off,
		      int size, unsigned long val)
{
	struct nicsim_port *port = container_of(pci, struct nicsim_port, pci);

	if (has_msix(port) && bar == port->ops->msix_bar && size == 4)
		msix_write(port, off, val);
	else if (bar != port->ops->bar)
		nicsim_error(port, "mmio: write outside the registers");
	else
		nicsim_reg_write(port, off, size, val);
}

static void bar_copy_from(struct um_pci_device *pci, int bar, void *buf,
			  unsigned int off, int size)
{
	u8 *p = buf;

	while (size--)
		*p++ = bar_read(pci, bar, off++, 1);
}

static void bar_copy_to(struct um_pci_device *pci, int bar, unsigned int off,
			const void *buf, int size)
{
	const u8 *p = buf;

	while (size--)
		bar_write(pci, bar, off++, 1, *p++);
}

static void bar_set(struct um_pci_device *pci, int bar, unsigned int off,
		    u8 value, int size)
{
	while (size--)
		bar_write(pci, bar, off++, 1, value);
}

static const struct um_pci_ops nicsim_pci_ops = {
	.cfgspace_read	= cfg_read,
	.cfgspace_write	= cfg_write,
	.bar_read	= bar_read,
	.bar_write	= bar_write,
	.bar_copy_from	= bar_copy_from,
	.bar_copy_to	= bar_copy_to,
	.bar_set	= bar_set,
};

static bool msi_enabled(struct nicsim_port *port)
{
	return !intx && port->cfg[CAP_MSI + PCI_MSI_FLAGS] &
	       PCI_MSI_FLAGS_ENABLE;
}

/* an ordinary event: it interrupts the CPU, once that has interrupts enabled */
static void irq_deliver(struct time_travel_event *ev)
{
	struct nicsim_irq *irq = container_of(ev, struct nicsim_irq, ev);
	struct nicsim_port *port = irq->port;

	if (nicsim_pci_msix(port)) {
		if (msix_masked(port, irq->vector)) {
			irq->held = true;
			return;
		}
		nicsim_irq_taken(irq);
		generic_handle_irq((u16)port->msix[4 * irq->vector + 2]);
		return;
	}
	if (msi_enabled(port)) {
		nicsim_irq_taken(irq);
		generic_handle_irq(get_unaligned_le16(port->cfg + CAP_MSI +
						      PCI_MSI_DATA_64));
		return;
	}

	/* a line that was released meanwhile, or that nobody listens to */
	if (!irq->level || get_unaligned_le16(port->cfg + PCI_COMMAND) &
			   PCI_COMMAND_INTX_DISABLE)
		return;
	if (!irq_has_action(port->pci.irq)) {
		time_travel_add_event_rel(ev, NSEC_PER_MSEC);
		return;
	}
	nicsim_irq_taken(irq);
	generic_handle_irq(port->pci.irq);
	/* still asserted: level-triggered, again when the CPU enables it */
	if (irq->level)
		time_travel_add_event_rel(ev, NSEC_PER_USEC);
}

static bool pci_irq_wanted(struct nicsim_port *port)
{
	return !(msi_enabled(port) || nicsim_pci_msix(port)) ||
	       nicsim_pci_master(port);
}

/* the port's device appears, at registration or when the bus is rescanned */
static int pci_notify(struct notifier_block *nb, unsigned long action,
		      void *data)
{
	struct pci_dev *pdev = to_pci_dev(data);
	int i;

	if (pci_domain_nr(pdev->bus) || pdev->bus->number)
		return NOTIFY_DONE;

	if (action == BUS_NOTIFY_ADD_DEVICE && registering) {
		registering->devfn = pdev->devfn;
		registering->present = true;
		registering = NULL;
	}

	for (i = 0; i < NICSIM_PORTS; i++) {
		struct nicsim_port *port = nicsim_ports[i];

		if (!port || !port->present || port->devfn != pdev->devfn)
			continue;
		if (action == BUS_NOTIFY_ADD_DEVICE) {
			port->dev = &pdev->dev;
			nicsim_dma_attach(&pdev->dev);
			/* UML allocates a bare descriptor for the line */
			irq_set_chip_and_handler(port->pci.irq, &dummy_irq_chip,
						 handle_simple_irq);
		} else if (action == BUS_NOTIFY_REMOVED_DEVICE) {
			port->dev = NULL;
		}
	}
	return NOTIFY_DONE;
}

static struct notifier_block pci_nb = {
	.notifier_call = pci_notify,
};

static void cfg_put(struct nicsim_port *port, u32 off, int size, u32 val,
		    u32 mask)
{
	int i;

	for (i = 0; i < size; i++, val >>= 8, mask >>= 8) {
		port->cfg[off + i] = val;
		port->cfg_mask[off + i] = mask;
	}
}

static void cfg_init(struct nicsim_port *port)
{
	const struct nicsim_ops *ops = port->ops;
	/* the codes of the link speeds are the generations' numbers */
	u32 link = max(ops->pcie_gen, 1U) | PCI_EXP_LNKSTA_NLW_X1;
	int i;

	cfg_put(port, PCI_VENDOR_ID, 2, ops->vendor, 0);
	cfg_put(port, PCI_DEVICE_ID, 2, ops->device, 0);
	cfg_put(port, PCI_COMMAND, 2, 0, 0x0546);
	cfg_put(port, PCI_STATUS, 2, PCI_STATUS_CAP_LIST, 0);
	cfg_put(port, PCI_REVISION_ID, 1, ops->revision, 0);
	cfg_put(port, PCI_CLASS_DEVICE, 2, PCI_CLASS_NETWORK_ETHERNET, 0);
	cfg_put(port, PCI_CACHE_LINE_SIZE, 1, 0, 0xff);
	cfg_put(port, PCI_BASE_ADDRESS_0 + 4 * ops->bar, 4, 0,
		~(ops->bar_size - 1));
	cfg_put(port, PCI_SUBSYSTEM_VENDOR_ID, 2, ops->vendor, 0);
	cfg_put(port, PCI_SUBSYSTEM_ID, 2, 0x0123, 0);
	cfg_put(port, PCI_CAPABILITY_LIST, 1, CAP_PM, 0);
	cfg_put(port, PCI_INTERRUPT_LINE, 1, 0, 0xff);
	cfg_put(port, PCI_INTERRUPT_PIN, 1, 1, 0);

	/* D0 and D3hot; no wake-up: PME is not modelled */
	cfg_put(port, CAP_PM, 1, PCI_CAP_ID_PM, 0);
	cfg_put(port, CAP_PM + 1, 1, intx ? CAP_EXP : CAP_MSI, 0);
	cfg_put(port, CAP_PM + PCI_PM_PMC, 2, 3, 0);
	cfg_put(port, CAP_PM + PCI_PM_CTRL, 2, PCI_PM_CTRL_NO_SOFT_RESET,
		PCI_PM_CTRL_STATE_MASK);

	cfg_put(port, CAP_MSI, 2, PCI_CAP_ID_MSI | CAP_EXP << 8, 0);
	cfg_put(port, CAP_MSI + PCI_MSI_FLAGS, 2, PCI_MSI_FLAGS_64BIT,
		PCI_MSI_FLAGS_ENABLE | PCI_MSI_FLAGS_QSIZE);
	cfg_put(port, CAP_MSI + PCI_MSI_ADDRESS_LO, 4, 0, ~3U);
	cfg_put(port, CAP_MSI + PCI_MSI_ADDRESS_HI, 4, 0, ~0U);
	cfg_put(port, CAP_MSI + PCI_MSI_DATA_64, 2, 0, 0xffff);

	if (has_msix(port)) {
		cfg_put(port, PCI_BASE_ADDRESS_0 + 4 * ops->msix_bar, 4, 0,
			~(MSIX_BAR_SIZE - 1));
		cfg_put(port, CAP_MSIX, 2, PCI_CAP_ID_MSIX, 0);
		cfg_put(port, CAP_MSIX + PCI_MSIX_FLAGS, 2,
			ops->msix_vectors - 1,
			PCI_MSIX_FLAGS_ENABLE | PCI_MSIX_FLAGS_MASKALL);
		cfg_put(port, CAP_MSIX + PCI_MSIX_TABLE, 4, ops->msix_bar, 0);
		cfg_put(port, CAP_MSIX + PCI_MSIX_PBA, 4,
			MSIX_PBA | ops->msix_bar, 0);
		for (i = 0; i < ops->msix_vectors; i++)
			port->msix[4 * i + 3] = PCI_MSIX_ENTRY_CTRL_MASKBIT;
	}

	/* the chain ends here without a link of its own */
	if (ops->integrated) {
		port->cfg[(intx ? CAP_PM : CAP_MSI) + 1] = 0;
		return;
	}

	/* version 2 endpoint, one lane, 128 bytes payload, 512 requested */
	cfg_put(port, CAP_EXP, 2, PCI_CAP_ID_EXP |
		(has_msix(port) ? CAP_MSIX << 8 : 0), 0);
	cfg_put(port, CAP_EXP + PCI_EXP_FLAGS, 2,
		PCI_EXP_TYPE_ENDPOINT << 4 | 2, 0);
	cfg_put(port, CAP_EXP + PCI_EXP_DEVCAP, 4, PCI_EXP_DEVCAP_RBER, 0);
	cfg_put(port, CAP_EXP + PCI_EXP_DEVCTL, 2, 0x2000, 0x7fff);
	cfg_put(port, CAP_EXP + PCI_EXP_LNKCAP, 4, link, 0);
	cfg_put(port, CAP_EXP + PCI_EXP_LNKCTL, 2, 0, 0x01fb);
	cfg_put(port, CAP_EXP + PCI_EXP_LNKSTA, 2, link, 0);
	cfg_put(port, CAP_EXP + PCI_EXP_DEVCTL2, 2, 0, 0xffff);
}

static int pci_plug_port(struct nicsim_port *port)
{
	int err, i;

	cfg_init(port);
	for (i = 0; i < NICSIM_VECTORS; i++) {
		port->irq[i].port = port;
		port->irq[i].vector = i;
		time_travel_set_event_fn(&port->irq[i].ev, irq_deliver);
	}
	port->pci.ops = &nicsim_pci_ops;

	registering = port;
	err = um_pci_device_register(&port->pci);
	registering = NULL;
	if (err)
		return err;
	return port->present ? 0 : -ENODEV;
}

static int pci_plug(void)
{
	int err, i;

	err = bus_register_notifier(&pci_bus_type, &pci_nb);
	for (i = 0; i < NICSIM_PORTS && !err; i++)
		err = pci_plug_port(nicsim_ports[i]);
	return err;
}

const struct nicsim_bus nicsim_pci_bus = {
	.plug		= pci_plug,
	.read_max	= pci_mrrs,
	.master		= nicsim_pci_master,
	.irq_wanted	= pci_irq_wanted,
};
