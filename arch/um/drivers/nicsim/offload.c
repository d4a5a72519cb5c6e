// SPDX-License-Identifier: GPL-2.0
/*
 * nicsim: checksum insertion, checksum verification and TCP segmentation, as
 * the cards' hardware does them: on the bytes, from the offsets the driver
 * gave. What a driver asks is checked against what the bytes say.
 */
#include <linux/if_ether.h>
#include <linux/if_vlan.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/tcp.h>
#include <linux/udp.h>
#include <net/checksum.h>
#include <net/ip6_checksum.h>
#include <linux/unaligned.h>
#include "nicsim.h"

/**
 * nicsim_parse - find the headers of a frame
 * @data: the frame
 * @len: its length
 * @l: filled in
 *
 * Up to two VLAN tags are passed over. A fragment has no transport header to
 * speak of, neither has IPv6 with extension headers: the cards do not follow
 * them.
 *
 * Context: any.
 * Return: true when it is IP and @l is valid.
 */
bool nicsim_parse(const u8 *data, u32 len, struct nicsim_l4 *l)
{
	u32 off = 2 * ETH_ALEN;
	u16 type;
	int i;

	for (i = 0; ; i++, off += VLAN_HLEN) {
		if (off + 2 > len)
			return false;
		type = get_unaligned_be16(data + off);
		if (!(type == ETH_P_8021Q || type == ETH_P_8021AD) || i == 2)
			break;
	}
	l->l3 = off + 2;
	l->proto = 0;

	if (type == ETH_P_IP) {
		const struct iphdr *ip = (const void *)data + l->l3;

		if (l->l3 + sizeof(*ip) > len || ip->version != 4 ||
		    ip->ihl < 5 || l->l3 + ip->ihl * 4 > len)
			return false;
		l->v6 = false;
		l->l4 = l->l3 + ip->ihl * 4;
		if (!(ip->frag_off & htons(0x3fff)))
			l->proto = ip->protocol;
		return true;
	}
	if (type == ETH_P_IPV6) {
		const struct ipv6hdr *ip6 = (const void *)data + l->l3;

		if (l->l3 + sizeof(*ip6) > len)
			return false;
		l->v6 = true;
		l->l4 = l->l3 + sizeof(*ip6);
		l->proto = ip6->nexthdr;
		return true;
	}
	return false;
}

/* transport bytes by the IP header: padding behind the packet is not summed */
static u32 l4_len(const u8 *data, u32 len, const struct nicsim_l4 *l)
{
	u32 end;

	if (l->v6) {
		const struct ipv6hdr *ip6 = (const void *)data + l->l3;

		end = l->l3 + sizeof(*ip6) + ntohs(ip6->payload_len);
	} else {
		const struct iphdr *ip = (const void *)data + l->l3;

		end = l->l3 + ntohs(ip->tot_len);
	}
	return end >= l->l4 && end <= len ? end - l->l4 : 0;
}

static __sum16 l4_csum(const u8 *data, u32 n, const struct nicsim_l4 *l)
{
	__wsum sum = csum_partial(data + l->l4, n, 0);

	if (l->v6) {
		const struct ipv6hdr *ip6 = (const void *)data + l->l3;

		return csum_ipv6_magic(&ip6->saddr, &ip6->daddr, n, l->proto,
				       sum);
	} else {
		const struct iphdr *ip = (const void *)data + l->l3;

		return csum_tcpudp_magic(ip->saddr, ip->daddr, n, l->proto,
					 sum);
	}
}

static __sum16 *l4_check(u8 *data, const struct nicsim_l4 *l)
{
	return (__sum16 *)(data + l->l4 +
			   (l->proto == IPPROTO_TCP ?
			    offsetof(struct tcphdr, check) :
			    offsetof(struct udphdr, check)));
}

static u32 l4_min(u8 proto)
{
	return proto == IPPROTO_TCP ? sizeof(struct tcphdr) :
				      sizeof(struct udphdr);
}

/**
 * nicsim_tx_csum - insert the checksums of a frame
 * @data: the frame
 * @len: its length
 * @l4: offset of the transport header, as the driver says
 * @v6: IPv6, as the driver says
 * @proto: IPPROTO_TCP or IPPROTO_UDP, as the driver says
 *
 * Both checksums are computed from nothing, whatever the fields hold.
 *
 * Context: any.
 * Return: NULL, or the name of what is wrong with the request.
 */
const char *nicsim_tx_csum(u8 *data, u32 len, u32 l4, bool v6, u8 proto)
{
	struct nicsim_l4 l;
	__sum16 *check;
	u32 n;

	if (!nicsim_parse(data, len, &l) || l.v6 != v6)
		return "tx: checksum request for a frame of another protocol";
	if (l.proto != proto)
		return "tx: checksum request for another transport protocol";
	if (l.l4 != l4)
		return "tx: checksum request with a bad offset";
	n = l4_len(data, len, &l);
	if (n < l4_min(proto))
		return "tx: checksum request for a truncated frame";

	if (!v6) {
		struct iphdr *ip = (void *)data + l.l3;

		ip->check = 0;
		ip->check = ip_fast_csum(ip, ip->ihl);
	}
	check = l4_check(data, &l);
	*check = 0;
	*check = l4_csum(data, n, &l);
	if (!*check && proto == IPPROTO_UDP)
		*check = CSUM_MANGLED_0;
	return NULL;
}

/**
 * nicsim_rx_csum_ok - verify the transport checksum of a frame
 * @data: the frame
 * @len: its length
 * @l: where its headers are; TCP or UDP
 *
 * Context: any.
 * Return: true when it is right, or absent as UDP over IPv4 may have it.
 */
bool nicsim_rx_csum_ok(const u8 *data, u32 len, const struct nicsim_l4 *l)
{
	u32 n = l4_len(data, len, l);

	if (n < l4_min(l->proto))
		return false;
	if (l->proto == IPPROTO_UDP && !*l4_check((u8 *)data, l))
		return !l->v6;
	return !l4_csum(data, n, l);
}

/**
 * nicsim_tso_start - begin to cut a large send
 * @t: its headers are in @t->hdr; the rest is filled in
 * @avail: bytes in @t->hdr
 * @l4: offset of the TCP header, as the driver says
 * @v6: IPv6, as the driver says
 * @mss: payload of a segment, as the driver says
 * @total: bytes of the whole send, headers included
 *
 * Context: any.
 * Return: NULL, or the name of what is wrong with the request.
 */
const char *nicsim_tso_start(struct nicsim_tso *t, u32 avail, u32 l4, bool v6,
			     u32 mss, u32 total)
{
	const struct tcphdr *th;

	if (!mss)
		return "tx: TSO with an MSS of 0";
	if (!nicsim_parse(t->hdr, avail, &t->l) || t->l.v6 != v6 ||
	    t->l.proto != IPPROTO_TCP)
		return "tx: TSO of a frame of another protocol";
	if (t->l.l4 != l4 || l4 + sizeof(*th) > avail)
		return "tx: TSO with a bad header offset";
	th = (const void *)t->hdr + l4;
	t->hdr_len = l4 + th->doff * 4;
	if (th->doff < 5 || t->hdr_len > avail || t->hdr_len >= total)
		return "tx: TSO with a bad header length";
	t->mss = mss;
	return NULL;
}

/**
 * nicsim_tso_segment - make a frame of a segment
 * @t: the large send
 * @data: the frame; its payload is there, behind room for the headers
 * @off: offset of the payload in the large send
 * @len: bytes of payload
 * @last: it is the last segment
 *
 * IP length and identification, TCP sequence number and flags are adjusted (FIN
 * and PSH stay for the last segment, CWR for the first) and both checksums
 * computed, as the large send offload specification of NDIS has it.
 *
 * Context: any.
 */
void nicsim_tso_segment(const struct nicsim_tso *t, u8 *data, u32 off,
			u32 len, bool last)
{
	u32 frame_len = t->hdr_len + len;
	struct tcphdr *th;

	memcpy(data, t->hdr, t->hdr_len);
	if (t->l.v6) {
		struct ipv6hdr *ip6 = (void *)data + t->l.l3;

		ip6->payload_len = htons(frame_len - t->l.l4);
	} else {
		struct iphdr *ip = (void *)data + t->l.l3;

		ip->tot_len = htons(frame_len - t->l.l3);
		ip->id = htons(ntohs(ip->id) + off / t->mss);
	}

	th = (void *)data + t->l.l4;
	th->seq = htonl(ntohl(th->seq) + off);
	if (!last) {
		th->fin = 0;
		th->psh = 0;
	}
	if (off)
		th->cwr = 0;

	nicsim_tx_csum(data, frame_len, t->l.l4, t->l.v6, IPPROTO_TCP);
}
