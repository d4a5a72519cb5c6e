// SPDX-License-Identifier: GPL-2.0
/* KUnit tests of what e1000e decides without the hardware: interrupt rates
 * and the registers for them, offloads by MAC, speed, MTU and packet, room in
 * the transmit ring. Included by netdev.c.
 */

#include <kunit/test.h>

static struct e1000_adapter *e1000_test_adapter(struct kunit *test)
{
	struct e1000_adapter *adapter;

	adapter = kunit_kzalloc(test, sizeof(*adapter), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, adapter);

	return adapter;
}

/* Every interval is refused or ends in a register value that keeps it */
static void e1000_test_usecs(struct kunit *test)
{
	struct e1000_adapter *adapter = e1000_test_adapter(test);
	u32 usecs, reg, ns;

	for (usecs = 5; usecs <= 2 * E1000_MAX_ITR_USECS; usecs++) {
		int err = e1000e_set_itr_usecs(adapter, usecs);

		if (usecs < E1000_MIN_ITR_USECS ||
		    usecs > E1000_MAX_ITR_USECS) {
			KUNIT_EXPECT_EQ_MSG(test, err, -EINVAL, "%u", usecs);
			continue;
		}

		KUNIT_EXPECT_EQ_MSG(test, err, 0, "%u", usecs);

		/* neither off nor one of the modes */
		KUNIT_EXPECT_GT_MSG(test, adapter->itr_setting, 4, "%u", usecs);
		KUNIT_EXPECT_EQ_MSG(test, adapter->itr_setting & 3, 0, "%u",
				    usecs);

		/* a rate is whole, an interval a multiple of 256 ns */
		reg = e1000_itr_to_reg(adapter->itr);
		KUNIT_EXPECT_LE_MSG(test, reg, 0xFFFF, "%u", usecs);
		ns = reg * 256;
		KUNIT_EXPECT_GE_MSG(test, ns + 256, usecs * 1000, "%u", usecs);
		KUNIT_EXPECT_LE_MSG(test, ns, usecs * 1010, "%u", usecs);
	}
}

static void e1000_test_modes(struct kunit *test)
{
	struct e1000_adapter *adapter = e1000_test_adapter(test);
	u32 usecs;

	for (usecs = 0; usecs <= 4; usecs++) {
		adapter->itr = 1234;
		adapter->itr_setting = 1232;

		if (usecs == 2) {
			KUNIT_EXPECT_EQ(test, -EINVAL,
					e1000e_set_itr_usecs(adapter, usecs));
			KUNIT_EXPECT_EQ(test, adapter->itr, 1234);
			KUNIT_EXPECT_EQ(test, adapter->itr_setting, 1232);
			continue;
		}

		KUNIT_EXPECT_EQ(test, 0, e1000e_set_itr_usecs(adapter, usecs));
		KUNIT_EXPECT_EQ(test, adapter->itr_setting, usecs);
		if (usecs == 4) {
			KUNIT_EXPECT_GE(test, adapter->itr,
					E1000_SIMPLE_ITR_MIN);
			KUNIT_EXPECT_LE(test, adapter->itr,
					E1000_SIMPLE_ITR_MAX);
		} else {
			KUNIT_EXPECT_EQ(test, adapter->itr, 20000);
		}
	}
}

static void e1000_test_itr_reg(struct kunit *test)
{
	u32 itr, reg, last = U32_MAX;

	KUNIT_EXPECT_EQ(test, e1000_itr_to_reg(0), 0);
	KUNIT_EXPECT_EQ(test, e1000_itr_to_reg(2000), 1953);
	KUNIT_EXPECT_EQ(test, e1000_itr_to_reg(8000), 488);
	KUNIT_EXPECT_EQ(test, e1000_itr_to_reg(20000), 195);

	/* never off by rounding, never more than the register takes */
	for (itr = 1; itr <= 100000; itr++) {
		reg = e1000_itr_to_reg(itr);
		KUNIT_EXPECT_GE_MSG(test, reg, 1, "%u", itr);
		KUNIT_EXPECT_LE_MSG(test, reg, min(last, 0xFFFFU), "%u", itr);
		last = reg;
	}
}

static void e1000_test_simple_itr(struct kunit *test)
{
	u64 tx, rx;
	u32 itr;

	KUNIT_EXPECT_EQ(test, e1000_simple_itr(0, 0), E1000_SIMPLE_ITR_MAX);
	KUNIT_EXPECT_EQ(test, e1000_simple_itr(250000000, 250000000),
			E1000_SIMPLE_ITR_MIN);
	KUNIT_EXPECT_EQ(test, e1000_simple_itr(250000000, 0),
			E1000_SIMPLE_ITR_MAX);
	KUNIT_EXPECT_EQ(test, e1000_simple_itr(0, 250000000),
			E1000_SIMPLE_ITR_MAX);
	KUNIT_EXPECT_EQ(test, e1000_simple_itr(300000000, 100000000), 5000);

	for (tx = 0; tx <= U32_MAX; tx = tx * 3 / 2 + 1) {
		for (rx = 0; rx <= U32_MAX; rx = rx * 3 / 2 + 1) {
			itr = e1000_simple_itr(tx, rx);
			KUNIT_EXPECT_GE_MSG(test, itr, E1000_SIMPLE_ITR_MIN,
					    "%llu %llu", tx, rx);
			KUNIT_EXPECT_LE_MSG(test, itr, E1000_SIMPLE_ITR_MAX,
					    "%llu %llu", tx, rx);
		}
	}
}

/* The classes of the adaptive modes: nothing leads out of them, and traffic
 * that stays as it is ends in one of them or in turns between two.
 */
static void e1000_test_adaptive_itr(struct kunit *test)
{
	unsigned int class, next, i;
	int packets, size;

	for (packets = 0; packets <= 64; packets++) {
		for (size = 60; size <= 64000; size += 60) {
			for (class = lowest_latency; class <= bulk_latency;
			     class++) {
				next = e1000_update_itr(class, packets,
							packets * size);
				KUNIT_EXPECT_LE_MSG(test, next, bulk_latency,
						    "%u: %d * %d", class,
						    packets, size);
				if (!packets)
					KUNIT_EXPECT_EQ(test, next, class);
			}
		}
	}

	/* full-sized frames and large sends are bulk from any start */
	for (class = lowest_latency; class <= bulk_latency; class++) {
		for (next = class, i = 0; i < 3; i++)
			next = e1000_update_itr(next, 4, 4 * 64000);
		KUNIT_EXPECT_EQ(test, next, bulk_latency);
	}
}

static void e1000_test_default_features(struct kunit *test)
{
	enum e1000_mac_type type;

	for (type = e1000_82571; type <= e1000_pch_nvp; type++)
		KUNIT_EXPECT_EQ_MSG(test, e1000_default_off(type),
				    type == e1000_pch_spt ?
				    NETIF_F_TSO | NETIF_F_TSO6 : 0,
				    "mac %u", type);
}

KUNIT_DEFINE_ACTION_WRAPPER(e1000_test_free_netdev, free_netdev,
			    struct net_device *);
KUNIT_DEFINE_ACTION_WRAPPER(e1000_test_free_skb, kfree_skb, struct sk_buff *);

static struct net_device *e1000_test_netdev(struct kunit *test)
{
	struct net_device *netdev;

	netdev = alloc_etherdev(sizeof(struct e1000_adapter));
	KUNIT_ASSERT_NOT_NULL(test, netdev);
	KUNIT_ASSERT_EQ(test, 0,
			kunit_add_action_or_reset(test, e1000_test_free_netdev,
						  netdev));
	return netdev;
}

static void e1000_test_fix_features(struct kunit *test)
{
	const netdev_features_t vlan = NETIF_F_HW_VLAN_CTAG_RX |
				       NETIF_F_HW_VLAN_CTAG_TX;
	const netdev_features_t keep = NETIF_F_SG | NETIF_F_HW_CSUM |
				       NETIF_F_TSO | NETIF_F_TSO6;
	struct net_device *netdev = e1000_test_netdev(test);
	struct e1000_adapter *adapter = netdev_priv(netdev);
	static const int mtus[] = { 1500, 1501, 4000, 9000 };
	struct e1000_mac_info *mac = &adapter->hw.mac;
	netdev_features_t features;
	int i;

	for (mac->type = e1000_82571; mac->type <= e1000_pch_nvp; mac->type++) {
		for (i = 0; i < ARRAY_SIZE(mtus); i++) {
			netdev->mtu = mtus[i];

			features = e1000_fix_features(netdev, keep |
						      NETIF_F_RXFCS);
			KUNIT_EXPECT_EQ_MSG(test, features & keep, keep,
					    "mac %u mtu %d", mac->type,
					    mtus[i]);
			KUNIT_EXPECT_EQ_MSG(test, !(features & NETIF_F_RXFCS),
					    mac->type >= e1000_pch2lan &&
					    mtus[i] > ETH_DATA_LEN,
					    "mac %u mtu %d", mac->type,
					    mtus[i]);
		}
	}

	KUNIT_EXPECT_EQ(test, vlan,
			e1000_fix_features(netdev, NETIF_F_HW_VLAN_CTAG_RX));
	KUNIT_EXPECT_EQ(test, 0,
			e1000_fix_features(netdev, NETIF_F_HW_VLAN_CTAG_TX));
}

/* An Ethernet header, @l3len bytes of IP and a TCP header */
static struct sk_buff *e1000_test_skb(struct kunit *test, unsigned int l3len,
				      unsigned int gso_type)
{
	struct sk_buff *skb = alloc_skb(1024, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, skb);
	KUNIT_ASSERT_EQ(test, 0,
			kunit_add_action_or_reset(test, e1000_test_free_skb,
						  skb));

	skb_put_zero(skb, ETH_HLEN + l3len + sizeof(struct tcphdr));
	skb_reset_mac_header(skb);
	skb_set_network_header(skb, ETH_HLEN);
	skb_set_transport_header(skb, ETH_HLEN + l3len);
	tcp_hdr(skb)->doff = sizeof(struct tcphdr) / 4;
	skb->ip_summed = CHECKSUM_PARTIAL;
	skb->csum_start = skb_transport_header(skb) - skb->head;
	skb->csum_offset = offsetof(struct tcphdr, check);
	if (gso_type) {
		skb_shinfo(skb)->gso_size = 1448;
		skb_shinfo(skb)->gso_type = gso_type;
	}

	return skb;
}

#define E1000_TEST_TSO	(NETIF_F_TSO | NETIF_F_TSO6)
#define E1000_TEST_ALL	(NETIF_F_SG | NETIF_F_HW_CSUM | E1000_TEST_TSO)

static void e1000_test_tso_speed(struct kunit *test)
{
	static const u16 speeds[] = { 0, SPEED_10, SPEED_100, SPEED_1000, 0 };
	struct net_device *netdev = e1000_test_netdev(test);
	struct e1000_adapter *adapter = netdev_priv(netdev);
	struct sk_buff *tso4, *tso6, *plain;
	netdev_features_t expect;
	int i;

	tso4 = e1000_test_skb(test, 20, SKB_GSO_TCPV4);
	tso6 = e1000_test_skb(test, 40, SKB_GSO_TCPV6);
	plain = e1000_test_skb(test, 20, 0);

	for (i = 0; i < ARRAY_SIZE(speeds); i++) {
		adapter->link_speed = speeds[i];
		expect = E1000_TEST_ALL;
		if (speeds[i] != SPEED_1000)
			expect &= ~E1000_TEST_TSO;

		KUNIT_EXPECT_EQ_MSG(test, expect,
				    e1000_features_check(tso4, netdev,
							 E1000_TEST_ALL),
				    "%u Mbit/s", speeds[i]);
		KUNIT_EXPECT_EQ_MSG(test, expect,
				    e1000_features_check(tso6, netdev,
							 E1000_TEST_ALL),
				    "%u Mbit/s", speeds[i]);
		KUNIT_EXPECT_EQ_MSG(test, E1000_TEST_ALL,
				    e1000_features_check(plain, netdev,
							 E1000_TEST_ALL),
				    "%u Mbit/s", speeds[i]);

		/* nothing is offered that was not there */
		KUNIT_EXPECT_EQ_MSG(test, NETIF_F_SG,
				    e1000_features_check(tso4, netdev,
							 NETIF_F_SG),
				    "%u Mbit/s", speeds[i]);
	}
}

/* What is offered fits into the bytes of a context descriptor */
static void e1000_test_csum_offset(struct kunit *test)
{
	struct net_device *netdev = e1000_test_netdev(test);
	struct e1000_adapter *adapter = netdev_priv(netdev);
	unsigned int l3len, gso_type, end;
	netdev_features_t features;
	struct sk_buff *skb;

	adapter->link_speed = SPEED_1000;

	for (gso_type = 0; gso_type <= SKB_GSO_TCPV6;
	     gso_type += SKB_GSO_TCPV6) {
		for (l3len = 40; l3len <= 512; l3len += 4) {
			skb = e1000_test_skb(test, l3len, gso_type);
			end = ETH_HLEN + l3len;
			end += gso_type ? sizeof(struct tcphdr) :
					  offsetof(struct tcphdr, check);

			features = e1000_features_check(skb, netdev,
							E1000_TEST_ALL);
			KUNIT_EXPECT_EQ_MSG(test, features,
					    end + VLAN_HLEN > U8_MAX ?
					    NETIF_F_SG : E1000_TEST_ALL,
					    "%u bytes", l3len);
		}
	}
}

/* The room kept free is enough for data that is cut as badly as it can be */
static void e1000_test_tx_reserve(struct kunit *test)
{
	unsigned int limit, parts, left, len, need, i;

	for (limit = (4 << 10) - 96; limit <= 24 << 10; limit += 32) {
		for (parts = 1; parts <= MAX_SKB_FRAGS + 1; parts++) {
			left = TSO_LEGACY_MAX_SIZE;
			need = E1000_TX_DESC_EXTRA;

			/* a byte more than fits, a byte at least for others */
			for (i = parts; i; i--) {
				len = left - (i - 1);
				if (i > 1)
					len = min(len, limit + 1);
				need += DIV_ROUND_UP(len, limit);
				left -= len;
			}

			KUNIT_EXPECT_LE_MSG(test, need, e1000_tx_reserve(limit),
					    "limit %u, parts %u", limit, parts);
		}

		/* so that the smallest ring is of use */
		KUNIT_EXPECT_LT_MSG(test, e1000_tx_reserve(limit) -
				    MAX_SKB_FRAGS + 17, E1000_MIN_TXD,
				    "limit %u", limit);
	}
}

static struct kunit_case e1000_test_cases[] = {
	KUNIT_CASE(e1000_test_usecs),
	KUNIT_CASE(e1000_test_modes),
	KUNIT_CASE(e1000_test_itr_reg),
	KUNIT_CASE(e1000_test_simple_itr),
	KUNIT_CASE(e1000_test_adaptive_itr),
	KUNIT_CASE(e1000_test_default_features),
	KUNIT_CASE(e1000_test_fix_features),
	KUNIT_CASE(e1000_test_tso_speed),
	KUNIT_CASE(e1000_test_csum_offset),
	KUNIT_CASE(e1000_test_tx_reserve),
	{}
};

static struct kunit_suite e1000_test_suite = {
	.name = "e1000e",
	.test_cases = e1000_test_cases,
};

kunit_test_suite(e1000_test_suite);
