// SPDX-License-Identifier: GPL-2.0
/* Time, payload, statistics and the two ends of a stream; see txq.h. */

#include <endian.h>
#include <err.h>
#include <errno.h>
#include <math.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "txq.h"

#define PERIOD		65521	/* the largest prime below 64 KiB */
#define RECV_SIZE	65536
#define RESAMPLES	2000

__u64 txq_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * TXQ_NSEC + ts.tv_nsec;
}

/* Until a signal at the latest: the caller looks whether it has to stop. */
void txq_sleep_until(__u64 when)
{
	struct timespec ts = {
		.tv_sec = when / TXQ_NSEC,
		.tv_nsec = when % TXQ_NSEC,
	};

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
}

void txq_sleep(__u64 ns)
{
	struct timespec ts = {
		.tv_sec = ns / TXQ_NSEC,
		.tv_nsec = ns % TXQ_NSEC,
	};

	nanosleep(&ts, NULL);
}

/* splitmix64: any seed will do, 0 too */
__u64 txq_rand(__u64 *state)
{
	__u64 z = *state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

/* 0 <= x < 1 */
double txq_uniform(__u64 *state)
{
	return (txq_rand(state) >> 11) / 9007199254740992.0;
}

void txq_payload_init(struct txq_payload *p, __u64 seed, size_t max)
{
	size_t i;

	p->off = 0;
	p->max = max;
	p->buf = malloc(PERIOD + max);
	if (!p->buf)
		err(1, "malloc");
	for (i = 0; i < PERIOD; i++)
		p->buf[i] = txq_rand(&seed);
	for (; i < PERIOD + max; i++)
		p->buf[i] = p->buf[i - PERIOD];
}

void *txq_payload_at(const struct txq_payload *p)
{
	return p->buf + p->off % PERIOD;
}

bool txq_payload_ok(const struct txq_payload *p, const void *data, size_t len)
{
	return len <= p->max && !memcmp(txq_payload_at(p), data, len);
}

static int cmp_u64(const void *a, const void *b)
{
	__u64 x = *(const __u64 *)a, y = *(const __u64 *)b;

	return x < y ? -1 : x > y;
}

static int cmp_double(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* Nearest rank */
static double percentile(const __u64 *sorted, size_t n, unsigned int permille)
{
	size_t rank = (n * permille + 999) / 1000;

	return sorted[rank ? rank - 1 : 0] / 1e3;
}

static void *xcalloc(size_t n, size_t size)
{
	void *p = calloc(n, size);

	if (!p)
		err(1, "calloc");
	return p;
}

/*
 * 99 % confidence interval of the standard deviation, by the percentiles of
 * a circular block bootstrap.  Blocks, because one send waits for what the
 * one before it left in the queue: drawn one by one, the samples would look
 * better known than they are.  With sums over prefixes a block costs the
 * same whatever its length: 4000 samples take some 10 ms, against seconds of
 * interpreted code.
 */
static void bootstrap(struct txq_stats *st, const __u64 *ns, __u64 seed)
{
	size_t n = st->n, len, i, r, cut = RESAMPLES * 5 / 1000;
	double *sum, *square, *dev;

	for (len = 1; len * len * len < n; len++)
		;
	sum = xcalloc(n + len + 1, sizeof(*sum));
	square = xcalloc(n + len + 1, sizeof(*square));
	dev = xcalloc(RESAMPLES, sizeof(*dev));

	for (i = 0; i < n + len; i++) {
		double x = ns[i % n] / 1e3 - st->mean;

		sum[i + 1] = sum[i] + x;
		square[i + 1] = square[i] + x * x;
	}
	for (r = 0; r < RESAMPLES; r++) {
		double s = 0, q = 0, var;

		for (i = 0; i < n; i += len) {
			size_t take = n - i < len ? n - i : len;
			size_t from = txq_rand(&seed) % n;

			s += sum[from + take] - sum[from];
			q += square[from + take] - square[from];
		}
		var = (q - s * s / n) / (n - 1);
		dev[r] = var > 0 ? sqrt(var) : 0;
	}
	qsort(dev, RESAMPLES, sizeof(*dev), cmp_double);
	st->stddev_lo = dev[cut];
	st->stddev_hi = dev[RESAMPLES - 1 - cut];
	free(sum);
	free(square);
	free(dev);
}

void txq_stats(struct txq_stats *st, const __u64 *ns, size_t n, __u64 seed)
{
	double sum = 0, square = 0;
	__u64 *sorted;
	size_t i;

	memset(st, 0, sizeof(*st));
	st->n = n;
	if (n < 2)
		return;

	for (i = 0; i < n; i++)
		sum += ns[i] / 1e3;
	st->mean = sum / n;
	for (i = 0; i < n; i++)
		square += (ns[i] / 1e3 - st->mean) * (ns[i] / 1e3 - st->mean);
	st->stddev = sqrt(square / (n - 1));
	bootstrap(st, ns, seed);

	sorted = xcalloc(n, sizeof(*sorted));
	memcpy(sorted, ns, n * sizeof(*sorted));
	qsort(sorted, n, sizeof(*sorted), cmp_u64);
	st->p50 = percentile(sorted, n, 500);
	st->p90 = percentile(sorted, n, 900);
	st->p99 = percentile(sorted, n, 990);
	st->p999 = percentile(sorted, n, 999);
	st->max = sorted[n - 1] / 1e3;
	free(sorted);
}

void txq_stats_print(const struct txq_stats *st)
{
	printf("{\"samples\": %zu, \"mean\": %.3f, ", st->n, st->mean);
	printf("\"stddev\": %.3f, \"stddev_lo\": %.3f, \"stddev_hi\": %.3f, ",
	       st->stddev, st->stddev_lo, st->stddev_hi);
	printf("\"p50\": %.3f, \"p90\": %.3f, \"p99\": %.3f, ",
	       st->p50, st->p90, st->p99);
	printf("\"p99.9\": %.3f, \"max\": %.3f}", st->p999, st->max);
}

/* One sample a line, ns, in the order they were taken */
void txq_raw(const char *path, const __u64 *ns, size_t n)
{
	FILE *f = fopen(path, "w");
	size_t i;

	if (!f)
		err(1, "%s", path);
	for (i = 0; i < n; i++)
		fprintf(f, "%llu\n", ns[i]);
	if (fclose(f))
		err(1, "%s", path);
}

__u64 txq_arg(const char *what, const char *arg, __u64 min, __u64 max)
{
	unsigned long long v;
	char *end;

	errno = 0;
	v = strtoull(arg, &end, 0);
	if (errno || end == arg || *end || *arg == '-' || v < min || v > max)
		errx(2, "%s: '%s' is not in %llu..%llu", what, arg, min, max);
	return v;
}

/* Seconds, with a fraction if you like */
__u64 txq_arg_ns(const char *what, const char *arg)
{
	char *end;
	double v;

	v = strtod(arg, &end);
	if (end == arg || *end || !(v >= 0 && v <= 86400))
		errx(2, "%s: '%s' is not in 0..86400 seconds", what, arg);
	return v * TXQ_NSEC + 0.5;
}

static void on_alarm(int sig)
{
	static const char msg[] = "no progress: gave up\n";

	(void)sig;
	if (write(STDERR_FILENO, msg, sizeof(msg) - 1) < 0)
		_exit(3);
	_exit(1);
}

/* For what should take so long: with 15 s of grace the answer is no. */
void txq_watchdog(__u64 ns)
{
	signal(SIGALRM, on_alarm);
	alarm(ns / TXQ_NSEC + 16);
}

int txq_connect(const char *addr, const char *port)
{
	struct addrinfo hint = {
		.ai_socktype = SOCK_STREAM,
		.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
	};
	struct addrinfo *ai;
	int fd, ret, on = 1;

	ret = getaddrinfo(addr, port, &hint, &ai);
	if (ret)
		errx(1, "%s port %s: %s", addr, port, gai_strerror(ret));
	fd = socket(ai->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		err(1, "socket");
	if (connect(fd, ai->ai_addr, ai->ai_addrlen))
		err(1, "connect to %s port %s", addr, port);
	freeaddrinfo(ai);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	return fd;
}

void txq_sndbuf(int fd, __u64 bytes)
{
	int val = bytes;

	if (val && setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &val, sizeof(val)))
		err(1, "SO_SNDBUF");
}

void txq_send(int fd, const void *buf, size_t len)
{
	ssize_t n;

	n = send(fd, buf, len, MSG_NOSIGNAL);
	if (n < 0)
		err(1, "send");
	if ((size_t)n != len)
		errx(1, "send: %zd of %zu bytes", n, len);
}

/* Returns whether all came; false is the end of the stream */
bool txq_recv(int fd, void *buf, size_t len)
{
	ssize_t n;

	n = recv(fd, buf, len, MSG_WAITALL);
	if (n < 0)
		err(1, "recv");
	return (size_t)n == len;
}

void txq_put(int fd, const __u64 *words, size_t n)
{
	__be64 *wire = xcalloc(n, sizeof(*wire));
	size_t i;

	for (i = 0; i < n; i++)
		wire[i] = htobe64(words[i]);
	txq_send(fd, wire, n * sizeof(*wire));
	free(wire);
}

bool txq_get(int fd, __u64 *words, size_t n)
{
	size_t i;

	if (!txq_recv(fd, words, n * sizeof(*words)))
		return false;
	for (i = 0; i < n; i++)
		words[i] = be64toh(words[i]);
	return true;
}

void txq_put_result(int fd, const struct txq_result *res)
{
	__u64 head[] = { res->total, res->bad, res->ivals };

	txq_put(fd, head, 3);
	txq_put(fd, res->bytes, res->ivals);
}

bool txq_get_result(int fd, struct txq_result *res)
{
	__u64 head[3];

	if (!txq_get(fd, head, 3) || head[2] > TXQ_MAX_IVALS)
		return false;
	res->total = head[0];
	res->bad = head[1];
	res->ivals = head[2];
	return txq_get(fd, res->bytes, res->ivals);
}

/*
 * Send messages until the receiver has seen all its intervals and says so,
 * or until *stop if there is one.  The duration of each send() that starts
 * after the warm-up and before the end goes to ns[], as netperf's omni test
 * takes it: the clock right before and right after the call.  A send() that
 * starts in time counts in full, however late it returns.
 */
size_t txq_transmit(int fd, const __u64 *req, const int *stop,
		    __u64 *ns, size_t max)
{
	__u64 first, last, before, after;
	struct txq_payload p;
	bool done = false;
	size_t n = 0;
	__u64 word;

	txq_payload_init(&p, req[REQ_SEED], req[REQ_SIZE]);
	first = txq_now() + req[REQ_WARMUP];
	last = first + req[REQ_IVAL] * req[REQ_IVALS];
	do {
		const void *msg = txq_payload_at(&p);

		before = txq_now();
		txq_send(fd, msg, req[REQ_SIZE]);
		after = txq_now();
		p.off += req[REQ_SIZE];
		if (ns && before >= first && before < last) {
			if (n == max)
				errx(1, "more than %zu samples", max);
			ns[n++] = after - before;
		}
		if (after >= last)
			done = recv(fd, &word, sizeof(word),
				    MSG_DONTWAIT) == sizeof(word);
	} while (!done && !(stop && *stop));

	if (shutdown(fd, SHUT_WR))
		err(1, "shutdown");
	if (!done && !txq_get(fd, &word, 1))
		errx(1, "the receiver closed the connection");
	free(p.buf);
	return n;
}

/* Returns at the end of the stream, which comes soon after the word of done */
void txq_receive(int fd, const __u64 *req, struct txq_result *res)
{
	__u64 now, gone, start = 0;
	const __u64 word = TXQ_MAGIC;
	struct txq_payload p;
	bool done = false;
	ssize_t n;
	char *buf;

	memset(res, 0, sizeof(*res));
	txq_payload_init(&p, req[REQ_SEED], RECV_SIZE);
	buf = xcalloc(1, RECV_SIZE);
	do {
		n = recv(fd, buf, RECV_SIZE, 0);
		if (n < 0)
			err(1, "recv");
		now = txq_now();
		if (!start)
			start = now + req[REQ_WARMUP];
		if (req[REQ_VERIFY] && !res->bad && !txq_payload_ok(&p, buf, n))
			res->bad = 1 + p.off;
		p.off += n;
		if (now >= start) {
			/* What comes in one says that those before are over */
			gone = (now - start) / req[REQ_IVAL];
			if (gone > req[REQ_IVALS])
				gone = req[REQ_IVALS];
			res->ivals = gone;
			if (gone < req[REQ_IVALS])
				res->bytes[gone] += n;
		}
		if (!done && (res->ivals == req[REQ_IVALS] || !n)) {
			txq_put(fd, &word, 1);
			done = true;
		}
	} while (n);
	res->total = p.off;
	free(buf);
	free(p.buf);
}
