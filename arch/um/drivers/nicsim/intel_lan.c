// SPDX-License-Identifier: GPL-2.0
/*
 * nicsim: PHY, NVM and what management leaves to the driver of Intel's Gigabit
 * Ethernet controllers: as far as e1000e wants it before it believes there is a
 * card.
 *
 * Sources: the driver; register names as in the 82574 datasheet. The 82574's
 * PHY answers at address 1, with pages chosen by its register 22. The chipset's
 * answers at addresses 1 and 2, with pages chosen by register 31 that concern
 * registers from 16 on. All accesses complete at once. The NVM has an address
 * of Intel's with the port's number, and a checksum; nothing else is set. In
 * the chipset it is read through the flash registers, bank 0 is the valid one.
 */
#include <linux/bitfield.h>
#include <linux/etherdevice.h>
#include <linux/mii.h>
#include <linux/sizes.h>
#include <linux/unaligned.h>
#include "intel.h"

#define REG_STRAP		0x0000c
#define  STRAP_NVM_SIZE		GENMASK(5, 1)	/* units of 4 KiB, less one */
#define REG_EECD		0x00010
#define  EECD_PRES		BIT(8)
#define  EECD_AUTO_RD		BIT(9)
#define  EECD_SIZE		GENMASK(14, 11)
#define REG_EERD		0x00014
#define  EERD_START		BIT(0)
#define  EERD_DONE		BIT(1)
#define  EERD_ADDR		GENMASK(15, 2)
#define  EERD_DATA		GENMASK(31, 16)
#define REG_CTRL_EXT		0x00018
#define  CTRL_EXT_LPCD		BIT(2)
#define  CTRL_EXT_LSECCK	BIT(12)	/* no MACsec: jumbo frames can be */
#define REG_MDIC		0x00020
#define  MDIC_DATA		GENMASK(15, 0)
#define  MDIC_REG		GENMASK(20, 16)
#define  MDIC_PHY		GENMASK(25, 21)
#define  MDIC_WRITE		BIT(26)
#define  MDIC_READY		BIT(28)
#define  MDIC_ERROR		BIT(30)
#define REG_KMRN		0x00034
#define  KMRN_REN		BIT(21)
#define  KMRN_OFFSET		GENMASK(20, 16)
#define REG_EEMNGCTL		0x01010
#define  EEMNGCTL_CFG_DONE	BIT(18)
#define REG_FWSM		0x05b54
#define  FWSM_RSPCIPHY		BIT(6)
#define REG_HSFSTS		0x0e004
#define  HSFSTS_DONE		BIT(0)
#define  HSFSTS_DESC_VALID	BIT(14)
#define  HSFCTL_GO		BIT(16)
#define  HSFCTL_CYCLE		GENMASK(18, 17)
#define REG_FADDR		0x0e008
#define REG_FDATA0		0x0e010

#define NVM_COMPAT		0x03
#define NVM_SIGNATURE		0x13
#define NVM_CHECKSUM		0x3f
#define NVM_SUM			0xbaba

#define PHY_PAGE		31	/* of the chipset's */
#define PHY_PAGE_82574		22
#define PHY_EMI_ADDR		16
#define PHY_EMI_DATA		17
#define PHY_M88_STATUS		17	/* of the 82574's */
#define  M88_STATUS_SPEED	GENMASK(15, 14)
#define  M88_STATUS_FD		BIT(13)
#define  M88_STATUS_RESOLVED	BIT(11)
#define  M88_STATUS_LINK	BIT(10)
#define PHY_STATUS2		26	/* of the chipset's */
#define  STATUS2_SPEED		GENMASK(9, 8)

static void phy_advertise(struct nicsim_port *port)
{
	struct intel *c = port->priv;
	u16 bmcr = c->phy[MII_BMCR], adv = c->phy[MII_ADVERTISE];
	u32 speeds = 0;

	if (bmcr & BMCR_PDOWN) {
		speeds = 0;
	} else if (bmcr & BMCR_ANENABLE) {
		if (adv & ADVERTISE_10FULL)
			speeds |= NICSIM_SPEED_10;
		if (adv & ADVERTISE_100FULL)
			speeds |= NICSIM_SPEED_100;
		if (c->phy[MII_CTRL1000] & ADVERTISE_1000FULL)
			speeds |= NICSIM_SPEED_1000;
	} else if (bmcr & BMCR_SPEED1000) {
		speeds = NICSIM_SPEED_1000;
	} else {
		speeds = bmcr & BMCR_SPEED100 ? NICSIM_SPEED_100 :
						NICSIM_SPEED_10;
	}
	nicsim_wire_advertise(port, speeds);
}

/**
 * intel_phy_reset - reset the PHY
 * @port: the port
 *
 * The link goes down and is negotiated again.
 *
 * Context: device code.
 */
void intel_phy_reset(struct nicsim_port *port)
{
	struct intel *c = port->priv;

	memset(c->phy, 0, sizeof(c->phy));
	c->phy_page = 0;
	c->phy[MII_BMCR] = BMCR_ANENABLE | BMCR_FULLDPLX | BMCR_SPEED1000;
	c->phy[MII_ADVERTISE] = ADVERTISE_ALL | ADVERTISE_CSMA;
	c->phy[MII_CTRL1000] = ADVERTISE_1000FULL;
	phy_advertise(port);
}

/* a register's place in c->phy[], or -1 for one of the PHY's that is derived */
static u32 phy_place(struct intel *c, u32 num)
{
	return num < 16 ? num : ((c->phy_page << 5) + num) % 0x8000;
}

static u16 phy_read(struct intel *c, u32 num)
{
	u32 mbps = nicsim_wire_mbps();
	u32 speed = mbps == 1000 ? 2 : mbps == 100 ? 1 : 0;

	switch (num) {
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
		return mbps == 1000 ? LPA_1000FULL | LPA_1000LOCALRXOK |
				      LPA_1000REMRXOK : 0;
	case MII_EXPANSION:
		return mbps ? EXPANSION_NWAY : 0;
	case MII_ESTATUS:
		return ESTATUS_1000_TFULL | ESTATUS_1000_THALF;
	}
	if (c->chip->pch) {
		if (num == PHY_PAGE)
			return c->phy_page << 5;
		if (num == PHY_EMI_DATA && !c->phy_page)
			return c->emi[c->phy[PHY_EMI_ADDR]];
		if (num == PHY_STATUS2 && !c->phy_page)
			return FIELD_PREP(STATUS2_SPEED, speed);
	} else {
		if (num == PHY_PAGE_82574)
			return c->phy_page;
		if (num == PHY_M88_STATUS && !c->phy_page && mbps)
			return FIELD_PREP(M88_STATUS_SPEED, speed) |
			       M88_STATUS_FD | M88_STATUS_RESOLVED |
			       M88_STATUS_LINK;
	}
	return c->phy[phy_place(c, num)];
}

static void phy_write(struct nicsim_port *port, u32 num, u16 val)
{
	struct intel *c = port->priv;
	u16 old = c->phy[MII_BMCR];

	if (num == (c->chip->pch ? PHY_PAGE : PHY_PAGE_82574)) {
		c->phy_page = c->chip->pch ? val >> 5 : val;
		return;
	}
	if (c->chip->pch && num == PHY_EMI_DATA && !c->phy_page) {
		c->emi[c->phy[PHY_EMI_ADDR]] = val;
		return;
	}

	c->phy[phy_place(c, num)] = val;
	if (num != MII_BMCR)
		return;
	c->phy[MII_BMCR] = val & ~(BMCR_RESET | BMCR_ANRESTART);
	if (val & (BMCR_RESET | BMCR_ANRESTART) ||
	    (old ^ val) & (BMCR_PDOWN | BMCR_ANENABLE | BMCR_SPEED1000 |
			   BMCR_SPEED100))
		phy_advertise(port);
}

static u32 mdic(struct nicsim_port *port, u32 val)
{
	struct intel *c = port->priv;
	u32 addr = FIELD_GET(MDIC_PHY, val), num = FIELD_GET(MDIC_REG, val);

	if (addr != 1 && !(addr == 2 && c->chip->pch))
		return val | MDIC_READY | MDIC_ERROR;
	/* what is at address 2 has no pages but the first */
	if (addr == 2 && num != PHY_PAGE)
		c->phy_page = 0;
	if (val & MDIC_WRITE)
		phy_write(port, num, val);
	else
		val = (val & ~MDIC_DATA) | phy_read(c, num);
	return val | MDIC_READY;
}

/* the flash controller: only reading is modelled */
static u32 flash(struct nicsim_port *port, u32 val)
{
	struct intel *c = port->priv;
	u32 word = c->regs[REG_FADDR / 4] / 2;

	if (!(val & HSFCTL_GO))
		return (val & ~GENMASK(15, 0)) | HSFSTS_DESC_VALID;
	if (val & HSFCTL_CYCLE)
		nicsim_error(port, "Flash: other than reading");
	if (word + 1 < INTEL_NVM_WORDS)
		c->regs[REG_FDATA0 / 4] = c->nvm[word + 1] << 16 | c->nvm[word];
	else
		c->regs[REG_FDATA0 / 4] = U32_MAX;
	return HSFSTS_DESC_VALID | HSFSTS_DONE;
}

/**
 * intel_lan_write - a register of this file is written
 * @port: the port
 * @off: its offset
 * @val: the value
 *
 * Context: that of the driver's access.
 * Return: true when it is one, and that is done; false when it is another.
 */
bool intel_lan_write(struct nicsim_port *port, u32 off, u32 val)
{
	struct intel *c = port->priv;
	u32 *r = &c->regs[off / 4];
	u32 i;

	switch (off) {
	case REG_EECD:
	case REG_EEMNGCTL:
	case REG_FWSM:
	case REG_STRAP:
		return true;
	case REG_EERD:
		if (c->chip->pch)
			return false;
		i = FIELD_GET(EERD_ADDR, val);
		*r = (val & EERD_ADDR) | EERD_DONE |
		     FIELD_PREP(EERD_DATA, i < INTEL_NVM_WORDS ? c->nvm[i] :
								 U16_MAX);
		return true;
	case REG_MDIC:
		*r = mdic(port, val);
		return true;
	case REG_KMRN:
		if (!c->chip->pch)
			return false;
		i = FIELD_GET(KMRN_OFFSET, val);
		if (val & KMRN_REN)
			*r = (val & ~GENMASK(15, 0)) | c->kmrn[i];
		else
			c->kmrn[i] = val;
		return true;
	case REG_HSFSTS:
		if (!c->chip->pch)
			return false;
		*r = flash(port, val);
		return true;
	}
	return false;
}

/**
 * intel_lan_reset - registers of this file after a reset of the MAC
 * @port: the port
 *
 * Context: device code.
 */
void intel_lan_reset(struct nicsim_port *port)
{
	struct intel *c = port->priv;
	u32 *r = c->regs;

	r[REG_EECD / 4] = EECD_PRES | EECD_AUTO_RD | FIELD_PREP(EECD_SIZE, 2);
	r[REG_EEMNGCTL / 4] = EEMNGCTL_CFG_DONE;
	if (!c->chip->pch)
		return;
	r[REG_STRAP / 4] = FIELD_PREP(STRAP_NVM_SIZE, 1);
	r[REG_CTRL_EXT / 4] = CTRL_EXT_LPCD | CTRL_EXT_LSECCK;
	r[REG_FWSM / 4] = FWSM_RSPCIPHY;
	r[REG_HSFSTS / 4] = HSFSTS_DESC_VALID;
}

/**
 * intel_lan_init - power-on
 * @port: the port
 *
 * Context: process, before any device code runs.
 */
void intel_lan_init(struct nicsim_port *port)
{
	u8 mac[ETH_ALEN] = { 0x00, 0x1b, 0x21, 0x74, 0x00, port->index + 1 };
	struct intel *c = port->priv;
	u16 sum = 0;
	u32 i;

	for (i = 0; i < 3; i++)
		c->nvm[i] = get_unaligned_le16(mac + 2 * i);
	if (c->chip->pch) {
		c->nvm[NVM_COMPAT] = 1;		/* the checksum is valid */
		c->nvm[NVM_SIGNATURE] = 0x8000;	/* and so is the bank */
	}
	for (i = 0; i < NVM_CHECKSUM; i++)
		sum += c->nvm[i];
	c->nvm[NVM_CHECKSUM] = NVM_SUM - sum;

	/* powered down until the driver resets it */
	c->phy[MII_BMCR] = BMCR_ANENABLE | BMCR_FULLDPLX | BMCR_SPEED1000 |
			   BMCR_PDOWN;
	c->phy[MII_ADVERTISE] = ADVERTISE_ALL | ADVERTISE_CSMA;
	c->phy[MII_CTRL1000] = ADVERTISE_1000FULL;
}
