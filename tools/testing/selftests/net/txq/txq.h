/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the txq workers share.
 *
 * txq_server runs on the peer and forks a child for each connection.  The
 * first message of a connection is a request: an array of big endian 64-bit
 * words that says who sends, how much and for how long.  The server answers
 * it with TXQ_MAGIC; then:
 *
 *	TXQ_SINK	the client sends, the server counts and answers the
 *			end of the stream with its counts
 *	TXQ_SOURCE	the client says go (one word), the server sends
 *	TXQ_ECHO	the server answers every request until the client is
 *			done
 *
 * Goodput is counted where the bytes arrive: a receiver takes the time of
 * its first byte for zero, lets the warm-up pass and counts bytes in equal
 * intervals.  The sender goes on for a moment longer, so that the last
 * interval is as full as the others: until the receiver says, in one word,
 * that it is done.
 *
 * In a virtual clock every look at it costs time, and a loop that waits for
 * it to move never ends.  So: block, and look twice a message.
 */
#ifndef TXQ_H
#define TXQ_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#define TXQ_MAGIC	0x7478717561726431ULL
#define TXQ_NSEC	1000000000ULL
#define TXQ_MAX_IVALS	1000
#define TXQ_MAX_MSG	(16 << 20)

enum txq_kind {
	TXQ_SINK = 1,
	TXQ_SOURCE,
	TXQ_ECHO,
};

enum txq_req {
	REQ_MAGIC,
	REQ_KIND,
	REQ_SIZE,		/* of a message or request, bytes */
	REQ_RSP,		/* of a response, bytes */
	REQ_SNDBUF,		/* of who sends, 0: the kernel's own */
	REQ_SEED,		/* of the payload */
	REQ_VERIFY,
	REQ_WARMUP,		/* ns */
	REQ_IVAL,		/* ns */
	REQ_IVALS,
	REQ_WORDS
};

struct txq_result {
	__u64 total;			/* bytes, all of the stream */
	__u64 bad;			/* 1 + offset of the first wrong byte */
	__u64 ivals;			/* complete intervals */
	__u64 bytes[TXQ_MAX_IVALS];	/* received in each */
};

/* Payload: pseudo-random, repeated with a prime period, so that a segment
 * lost, doubled, shifted or taken from another stream does not fit.
 */
struct txq_payload {
	__u8 *buf;
	__u64 off;
	size_t max;			/* bytes that can be had at once */
};

void txq_payload_init(struct txq_payload *p, __u64 seed, size_t max);
void *txq_payload_at(const struct txq_payload *p);
bool txq_payload_ok(const struct txq_payload *p, const void *data, size_t len);

struct txq_stats {
	size_t n;
	double mean, stddev, stddev_lo, stddev_hi;	/* us */
	double p50, p90, p99, p999, max;		/* us */
};

void txq_stats(struct txq_stats *st, const __u64 *ns, size_t n, __u64 seed);
void txq_stats_print(const struct txq_stats *st);
void txq_raw(const char *path, const __u64 *ns, size_t n);

__u64 txq_now(void);
void txq_sleep(__u64 ns);
void txq_sleep_until(__u64 when);
__u64 txq_rand(__u64 *state);
double txq_uniform(__u64 *state);

__u64 txq_arg(const char *what, const char *arg, __u64 min, __u64 max);
__u64 txq_arg_ns(const char *what, const char *arg);
void txq_watchdog(__u64 ns);

int txq_connect(const char *addr, const char *port);
void txq_sndbuf(int fd, __u64 bytes);
void txq_send(int fd, const void *buf, size_t len);
bool txq_recv(int fd, void *buf, size_t len);
void txq_put(int fd, const __u64 *words, size_t n);
bool txq_get(int fd, __u64 *words, size_t n);

void txq_put_result(int fd, const struct txq_result *res);
bool txq_get_result(int fd, struct txq_result *res);

size_t txq_transmit(int fd, const __u64 *req, const int *stop,
		    __u64 *ns, size_t max);
void txq_receive(int fd, const __u64 *req, struct txq_result *res);

#endif /* TXQ_H */
