// SPDX-License-Identifier: GPL-2.0
/*
 * nicsim: the wire, a full-duplex twisted-pair link between the two ports.
 *
 * A frame occupies its transmitter for preamble and start delimiter (8 bytes),
 * the frame padded to 60 bytes, FCS (4) and inter-frame gap (12), and arrives
 * whole at the other end when its last bit does, NICSIM_PROPAGATION_NS later.
 * Frames are never reordered. The FCS is not carried: nothing corrupts frames,
 * the wire can only lose them.
 *
 * Both ends negotiate the best speed that both offer, as IEEE 802.3 clause 28
 * does, after either end changed what it offers.
 */
#include "nicsim.h"

#define NICSIM_PREAMBLE		8
#define NICSIM_MIN_FRAME	60
#define NICSIM_FCS		4
#define NICSIM_IFG		12

/*
 * An estimate. A DP83865 takes 384 ns to receive (datasheet, 6.4.2), to which
 * come the sender's PHY and the cable's 5 ns a metre.
 */
#define NICSIM_PROPAGATION_NS	600

/*
 * Auto-negotiation and 1000BASE-T training take one to three seconds; nothing
 * measured here depends on it.
 */
#define NICSIM_NEGOTIATION_NS	(1500ULL * NSEC_PER_MSEC)

static u32 wire_mbps;
static struct time_travel_event wire_negotiated;

/**
 * nicsim_wire_mbps - speed of the link
 *
 * Context: any.
 * Return: Mbit/s, 0 while the link is down.
 */
u32 nicsim_wire_mbps(void)
{
	return wire_mbps;
}

static u32 wire_bytes(u32 len)
{
	return NICSIM_PREAMBLE + max_t(u32, len, NICSIM_MIN_FRAME) + NICSIM_FCS;
}

/**
 * nicsim_wire_ns - time a frame occupies the wire
 * @len: bytes of the frame without FCS
 * @mbps: speed
 *
 * Context: any.
 * Return: nanoseconds from the first bit of the preamble until the next frame
 *	can start, inter-frame gap included.
 */
u64 nicsim_wire_ns(u32 len, u32 mbps)
{
	return (wire_bytes(len) + NICSIM_IFG) * 8000ULL / mbps;
}

/**
 * nicsim_wire_speeds - all speeds up to one
 * @mbps: the highest, Mbit/s
 *
 * Context: any.
 * Return: mask of NICSIM_SPEED_*, 0 when there is no such speed.
 */
u32 nicsim_wire_speeds(u32 mbps)
{
	static const u32 speeds[] = { 10, 100, 1000, 2500 };
	int i;

	for (i = 0; i < ARRAY_SIZE(speeds); i++)
		if (speeds[i] == mbps)
			return GENMASK(i, 0);
	return 0;
}

static void wire_arrive(struct time_travel_event *ev)
{
	struct nicsim_wire_end *end = container_of(ev, struct nicsim_wire_end,
						   arrive);
	struct nicsim_port *port = container_of(end, struct nicsim_port, wire);
	struct nicsim_frame *f, *next;

	f = list_first_entry(&end->fly, struct nicsim_frame, list);
	list_del(&f->list);
	next = list_first_entry_or_null(&end->fly, struct nicsim_frame, list);
	if (next)
		time_travel_add_event_rel(ev, next->when - time_travel_now());

	if (f->lost) {
		end->lost++;
		nicsim_frame_free(f);
		return;
	}
	port->peer->ops->rx_frame(port->peer, f);
}

/**
 * nicsim_wire_send - put a frame on the wire
 * @port: the sender
 * @frame: the frame, which the wire takes over
 *
 * The frame starts when the one before has left. A real transmitter has one
 * frame at a time: a device calls this when the frame is complete in its FIFO
 * and keeps the FIFO's room occupied until the time returned.
 *
 * Context: device code.
 * Return: when the last bit of the frame, FCS included, will have left.
 */
u64 nicsim_wire_send(struct nicsim_port *port, struct nicsim_frame *frame)
{
	struct nicsim_wire_end *end = &port->wire;
	u64 start = max(time_travel_now(), end->busy_until);
	u64 left;

	end->sent++;
	if (!wire_mbps) {
		end->lost++;
		nicsim_frame_free(frame);
		return start;
	}

	if (frame->len < NICSIM_MIN_FRAME) {
		memset(frame->data + frame->len, 0,
		       NICSIM_MIN_FRAME - frame->len);
		frame->len = NICSIM_MIN_FRAME;
	}

	left = start + wire_bytes(frame->len) * 8000ULL / wire_mbps;
	end->busy_until = start + nicsim_wire_ns(frame->len, wire_mbps);

	if (end->loss_ppm &&
	    (u64)nicsim_random() * 1000000 >> 32 < end->loss_ppm)
		frame->lost = true;
	frame->when = left + NICSIM_PROPAGATION_NS;
	if (list_empty(&end->fly))
		time_travel_add_event_rel(&end->arrive,
					  frame->when - time_travel_now());
	list_add_tail(&frame->list, &end->fly);

	return left;
}

static u32 wire_common(void)
{
	u32 mask = NICSIM_SPEED_ALL;
	int i;

	for (i = 0; i < NICSIM_PORTS; i++) {
		if (!nicsim_ports[i])
			return 0;
		if (nicsim_ports[i]->wire.unplugged)
			return 0;
		mask &= nicsim_ports[i]->wire.speeds &
			nicsim_ports[i]->wire.limit;
	}
	return mask;
}

static void wire_set_speed(u32 mbps)
{
	int i;

	if (wire_mbps == mbps)
		return;
	wire_mbps = mbps;

	for (i = 0; i < NICSIM_PORTS; i++) {
		struct nicsim_wire_end *end = &nicsim_ports[i]->wire;
		struct nicsim_frame *f;

		/* what is on a broken link is lost */
		if (!mbps)
			list_for_each_entry(f, &end->fly, list)
				f->lost = true;
		nicsim_ports[i]->ops->link_change(nicsim_ports[i], mbps);
	}
}

static void wire_negotiate(struct time_travel_event *ev)
{
	u32 mask = wire_common();

	if (mask & NICSIM_SPEED_2500)
		wire_set_speed(2500);
	else if (mask & NICSIM_SPEED_1000)
		wire_set_speed(1000);
	else if (mask & NICSIM_SPEED_100)
		wire_set_speed(100);
	else if (mask & NICSIM_SPEED_10)
		wire_set_speed(10);
}

static void wire_restart(void)
{
	if (nicsim_ports[0] && nicsim_ports[1])
		wire_set_speed(0);
	time_travel_del_event(&wire_negotiated);
	if (wire_common())
		time_travel_add_event_rel(&wire_negotiated,
					  NICSIM_NEGOTIATION_NS);
}

/**
 * nicsim_wire_advertise - (re)start negotiation with what a PHY offers
 * @port: the PHY's port
 * @speeds: mask of NICSIM_SPEED_*; 0 when it is powered down
 *
 * The link goes down at once and comes up after negotiation, each told to
 * both devices by ops->link_change().
 *
 * Context: device code.
 */
void nicsim_wire_advertise(struct nicsim_port *port, u32 speeds)
{
	port->wire.speeds = speeds;
	wire_restart();
}

/**
 * nicsim_wire_limit - what the cable, or the one who tests, allows
 * @port: either port
 * @speeds: mask of NICSIM_SPEED_*
 * @unplugged: the cable is pulled
 *
 * Context: interrupts disabled.
 */
void nicsim_wire_limit(struct nicsim_port *port, u32 speeds, bool unplugged)
{
	if (port->wire.limit == speeds && port->wire.unplugged == unplugged)
		return;
	port->wire.limit = speeds;
	port->wire.unplugged = unplugged;
	wire_restart();
}

/**
 * nicsim_wire_init - initialise a port's end of the wire
 * @port: the port
 * @speeds: what the link may have, mask of NICSIM_SPEED_*
 *
 * Context: before any device code runs.
 */
void nicsim_wire_init(struct nicsim_port *port, u32 speeds)
{
	INIT_LIST_HEAD(&port->wire.fly);
	port->wire.limit = speeds;
	time_travel_set_hw_event_fn(&port->wire.arrive, wire_arrive);
	time_travel_set_hw_event_fn(&wire_negotiated, wire_negotiate);
}
