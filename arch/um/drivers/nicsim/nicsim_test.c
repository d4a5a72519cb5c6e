// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of what a device model rests on: the wire's arithmetic, and
 * checksums and segmentation. Expected values are worked out by hand or by a
 * second, slower way, never by the code under test.
 */
#include <kunit/test.h>
#include <linux/if_ether.h>
#include <linux/if_vlan.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/tcp.h>
#include <linux/udp.h>
#include <linux/unaligned.h>
#include "nicsim.h"

#define PAYLOAD		3000
#define MSS		1448

static void wire_times(struct kunit *test)
{
	/* 8 + 1514 + 4 + 12 = 1538 bytes */
	KUNIT_EXPECT_EQ(test, nicsim_wire_ns(1514, 1000), 12304);
	KUNIT_EXPECT_EQ(test, nicsim_wire_ns(1514, 100), 123040);
	KUNIT_EXPECT_EQ(test, nicsim_wire_ns(1514, 10), 1230400);
	/* shorter ones are padded: 84 bytes, 1 488 095 frames a second */
	KUNIT_EXPECT_EQ(test, nicsim_wire_ns(60, 1000), 672);
	KUNIT_EXPECT_EQ(test, nicsim_wire_ns(1, 1000), 672);
	KUNIT_EXPECT_EQ(test, nicsim_wire_ns(61, 1000), 680);
	/* 1538 bytes in 0.4 bits a nanosecond, rounded down */
	KUNIT_EXPECT_EQ(test, nicsim_wire_ns(1514, 2500), 4921);
	KUNIT_EXPECT_EQ(test, nicsim_wire_speeds(1000), NICSIM_SPEED_10 |
			NICSIM_SPEED_100 | NICSIM_SPEED_1000);
	KUNIT_EXPECT_EQ(test, nicsim_wire_speeds(2000), 0);
}

static void spread_bounds(struct kunit *test)
{
	u64 min = U64_MAX, max = 0, sum = 0;
	int i;

	KUNIT_EXPECT_EQ(test, nicsim_spread(0, 10, U32_MAX), 0);
	KUNIT_EXPECT_EQ(test, nicsim_spread(1000, 0, 12345), 1000);
	KUNIT_EXPECT_EQ(test, nicsim_spread(1000, 10, 0), 900);
	KUNIT_EXPECT_EQ(test, nicsim_spread(1000, 10, U32_MAX), 1100);
	KUNIT_EXPECT_EQ(test, nicsim_spread(1000, 100, 0), 0);
	for (i = 0; i < 10000; i++) {
		u64 ns = nicsim_spread(1000, 10, nicsim_random());

		min = min(min, ns);
		max = max(max, ns);
		sum += ns;
	}
	KUNIT_EXPECT_GE(test, min, 900);
	KUNIT_EXPECT_LE(test, max, 1100);
	/* standard error of the mean is 0.6 */
	KUNIT_EXPECT_GE(test, sum / 10000, 995);
	KUNIT_EXPECT_LE(test, sum / 10000, 1005);
}

/* RFC 1071, byte by byte */
static u16 slow_sum(const u8 *p, u32 len, u32 sum)
{
	u32 i;

	for (i = 0; i < len; i++)
		sum += i & 1 ? p[i] : p[i] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

/* all ones when the checksum of TCP or UDP in a plain frame is right */
static u16 slow_l4(const u8 *data, u32 len, u32 l4, bool v6, u8 proto)
{
	u32 addrs = l4 - (v6 ? 32 : 8);
	u32 sum = slow_sum(data + addrs, l4 - addrs, proto + len - l4);

	return slow_sum(data + l4, len - l4, sum);
}

/* a frame with TCP timestamps or UDP, and a payload of @n bytes */
static u32 make_frame(u8 *data, bool v6, bool vlan, u8 proto, u32 n)
{
	u32 l3 = ETH_HLEN + (vlan ? VLAN_HLEN : 0);
	u32 l4 = l3 + (v6 ? sizeof(struct ipv6hdr) : sizeof(struct iphdr));
	u32 hdr = l4 + (proto == IPPROTO_TCP ? 32 : sizeof(struct udphdr));
	u32 i;

	memset(data, 0xee, hdr);
	if (vlan) {
		put_unaligned_be16(ETH_P_8021Q, data + 12);
		put_unaligned_be16(0x2005, data + 14);
	}
	put_unaligned_be16(v6 ? ETH_P_IPV6 : ETH_P_IP, data + l3 - 2);

	if (v6) {
		struct ipv6hdr *ip6 = (void *)data + l3;

		ip6->version = 6;
		ip6->nexthdr = proto;
		ip6->payload_len = htons(hdr + n - l4);
	} else {
		struct iphdr *ip = (void *)data + l3;

		ip->version = 4;
		ip->ihl = 5;
		ip->tot_len = htons(hdr + n - l3);
		ip->id = htons(0xffff);
		ip->frag_off = htons(0x4000);
		ip->protocol = proto;
	}
	if (proto == IPPROTO_TCP) {
		struct tcphdr *th = (void *)data + l4;

		th->doff = 8;
		th->seq = htonl(0xfffffc00);
		th->fin = 1;
		th->psh = 1;
		th->cwr = 1;
	} else {
		struct udphdr *uh = (void *)data + l4;

		uh->len = htons(hdr + n - l4);
	}
	for (i = 0; i < n; i++)
		data[hdr + i] = i * 7 + (i >> 8);
	return hdr + n;
}

static void csum_insert(struct kunit *test)
{
	u8 *data = kunit_kzalloc(test, 2048, GFP_KERNEL);
	struct nicsim_l4 l;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, data);
	for (i = 0; i < 16; i++) {
		bool v6 = i & 1, vlan = i & 2, odd = i & 8;
		u8 proto = i & 4 ? IPPROTO_TCP : IPPROTO_UDP;
		u32 len = make_frame(data, v6, vlan, proto, 700 + odd);

		KUNIT_ASSERT_TRUE(test, nicsim_parse(data, len, &l));
		KUNIT_EXPECT_EQ(test, l.l3, vlan ? 18 : 14);
		KUNIT_EXPECT_EQ(test, l.l4, l.l3 + (v6 ? 40 : 20));
		KUNIT_EXPECT_EQ(test, l.proto, proto);
		KUNIT_EXPECT_FALSE(test, nicsim_rx_csum_ok(data, len, &l));

		KUNIT_EXPECT_NULL(test, nicsim_tx_csum(data, len, l.l4, v6,
						       proto));
		KUNIT_EXPECT_EQ(test, slow_l4(data, len, l.l4, v6, proto),
				0xffff);
		if (!v6)
			KUNIT_EXPECT_EQ(test, slow_sum(data + l.l3, 20, 0),
					0xffff);
		KUNIT_EXPECT_TRUE(test, nicsim_rx_csum_ok(data, len, &l));
		/* padding is not summed, a flipped bit is seen */
		data[len] = 0xff;
		KUNIT_EXPECT_TRUE(test, nicsim_rx_csum_ok(data, len + 1, &l));
		data[len - 1] ^= 4;
		KUNIT_EXPECT_FALSE(test, nicsim_rx_csum_ok(data, len, &l));
	}
}

static void csum_bad_requests(struct kunit *test)
{
	u8 *data = kunit_kzalloc(test, 2048, GFP_KERNEL);
	u32 len;

	KUNIT_ASSERT_NOT_NULL(test, data);
	len = make_frame(data, false, false, IPPROTO_TCP, 100);
	KUNIT_EXPECT_NOT_NULL(test, nicsim_tx_csum(data, len, 36, false,
						   IPPROTO_TCP));
	KUNIT_EXPECT_NOT_NULL(test, nicsim_tx_csum(data, len, 34, true,
						   IPPROTO_TCP));
	KUNIT_EXPECT_NOT_NULL(test, nicsim_tx_csum(data, len, 34, false,
						   IPPROTO_UDP));
	KUNIT_EXPECT_NOT_NULL(test, nicsim_tx_csum(data, 40, 34, false,
						   IPPROTO_TCP));
	put_unaligned_be16(ETH_P_ARP, data + 12);
	KUNIT_EXPECT_NOT_NULL(test, nicsim_tx_csum(data, len, 34, false,
						   IPPROTO_TCP));
}

static void tso_segments(struct kunit *test)
{
	static const u32 lens[] = { MSS, MSS, PAYLOAD - 2 * MSS };
	u8 *big = kunit_kzalloc(test, 4096, GFP_KERNEL);
	u8 *seg = kunit_kzalloc(test, 2048, GFP_KERNEL);
	struct nicsim_tso t;
	int v6, i;

	KUNIT_ASSERT_NOT_NULL(test, big);
	KUNIT_ASSERT_NOT_NULL(test, seg);
	for (v6 = 0; v6 < 2; v6++) {
		u32 l4 = v6 ? 54 : 34, hdr = l4 + 32, off = 0;
		u32 total = make_frame(big, v6, false, IPPROTO_TCP, PAYLOAD);

		memcpy(t.hdr, big, 128);
		KUNIT_ASSERT_NULL(test, nicsim_tso_start(&t, 128, l4, v6, MSS,
							 total));
		KUNIT_ASSERT_EQ(test, t.hdr_len, hdr);

		for (i = 0; i < 3; i++) {
			u32 len = hdr + lens[i];
			struct tcphdr *th = (void *)seg + l4;

			memset(seg, 0x55, hdr);
			memcpy(seg + hdr, big + hdr + off, lens[i]);
			nicsim_tso_segment(&t, seg, off, lens[i], i == 2);

			KUNIT_EXPECT_EQ(test, ntohl(th->seq),
					0xfffffc00 + off);
			KUNIT_EXPECT_EQ(test, !!th->fin, i == 2);
			KUNIT_EXPECT_EQ(test, !!th->psh, i == 2);
			KUNIT_EXPECT_EQ(test, !!th->cwr, i == 0);
			KUNIT_EXPECT_EQ(test, slow_l4(seg, len, l4, v6,
						      IPPROTO_TCP), 0xffff);
			KUNIT_EXPECT_MEMEQ(test, seg + hdr, big + hdr + off,
					   lens[i]);
			if (v6) {
				KUNIT_EXPECT_EQ(test,
						get_unaligned_be16(seg + 18),
						len - l4);
			} else {
				KUNIT_EXPECT_EQ(test,
						get_unaligned_be16(seg + 16),
						len - 14);
				/* identification wraps */
				KUNIT_EXPECT_EQ(test,
						get_unaligned_be16(seg + 18),
						(u16)(0xffff + i));
				KUNIT_EXPECT_EQ(test, slow_sum(seg + 14, 20, 0),
						0xffff);
			}
			off += lens[i];
		}
	}
}

static void tso_bad_requests(struct kunit *test)
{
	u8 *big = kunit_kzalloc(test, 4096, GFP_KERNEL);
	struct nicsim_tso t;
	u32 total;

	KUNIT_ASSERT_NOT_NULL(test, big);
	total = make_frame(big, false, false, IPPROTO_TCP, PAYLOAD);
	memcpy(t.hdr, big, 128);
	KUNIT_EXPECT_NULL(test, nicsim_tso_start(&t, 128, 34, false, MSS,
						 total));
	KUNIT_EXPECT_NOT_NULL(test, nicsim_tso_start(&t, 128, 34, false, 0,
						     total));
	KUNIT_EXPECT_NOT_NULL(test, nicsim_tso_start(&t, 128, 32, false, MSS,
						     total));
	KUNIT_EXPECT_NOT_NULL(test, nicsim_tso_start(&t, 128, 34, true, MSS,
						     total));
	/* headers only */
	KUNIT_EXPECT_NOT_NULL(test, nicsim_tso_start(&t, 66, 34, false, MSS,
						     66));
	/* headers longer than what was read */
	KUNIT_EXPECT_NOT_NULL(test, nicsim_tso_start(&t, 60, 34, false, MSS,
						     total));
	t.hdr[46] = 0x40;	/* data offset 4 */
	KUNIT_EXPECT_NOT_NULL(test, nicsim_tso_start(&t, 128, 34, false, MSS,
						     total));
}

static struct kunit_case nicsim_cases[] = {
	KUNIT_CASE(wire_times),
	KUNIT_CASE(spread_bounds),
	KUNIT_CASE(csum_insert),
	KUNIT_CASE(csum_bad_requests),
	KUNIT_CASE(tso_segments),
	KUNIT_CASE(tso_bad_requests),
	{}
};

static struct kunit_suite nicsim_suite = {
	.name = "nicsim",
	.test_cases = nicsim_cases,
};

kunit_test_suite(nicsim_suite);

MODULE_DESCRIPTION("KUnit tests of the simulated network cards");
MODULE_LICENSE("GPL");
