// SPDX-License-Identifier: GPL-2.0
/*
 * Requests and responses, one at a time, with txq_server.
 *
 * Before each the client waits for a random time.  Without it requests fall
 * in step with a stream beside them, and then all find the queue in the same
 * state: one phase of it is measured a thousand times.  Prints one line of
 * JSON.
 */

#include <err.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "txq.h"

#define MAX_SAMPLES	(4 << 20)

static __u64 req[REQ_WORDS] = {
	[REQ_MAGIC] = TXQ_MAGIC,
	[REQ_KIND] = TXQ_ECHO,
	[REQ_SIZE] = 1,
	[REQ_RSP] = 1,
	[REQ_SEED] = 1,
	[REQ_VERIFY] = 1,
	[REQ_IVAL] = 1,
	[REQ_IVALS] = 1,
};

struct gap {
	__u64 mean;			/* ns */
	bool uniform;
	__u64 rand;
};

/* Exponential, the gaps of unrelated requests; or uniform, 0 to 2 x mean */
static void gap_sleep(struct gap *g)
{
	double u;

	if (!g->mean)
		return;
	u = txq_uniform(&g->rand);
	txq_sleep(g->mean * (g->uniform ? 2 * u : -log(1 - u)));
}

static size_t run(int fd, struct gap *g, __u64 time, __u64 *ns, size_t max)
{
	__u64 first, last, before, after;
	struct txq_payload out, in;
	size_t n = 0;
	void *buf;

	txq_payload_init(&out, req[REQ_SEED], req[REQ_SIZE]);
	txq_payload_init(&in, req[REQ_SEED] + 1, req[REQ_RSP]);
	buf = malloc(req[REQ_RSP]);
	if (!buf)
		err(1, "malloc");
	first = txq_now() + req[REQ_WARMUP];
	last = first + time;
	do {
		gap_sleep(g);
		before = txq_now();
		txq_send(fd, txq_payload_at(&out), req[REQ_SIZE]);
		if (!txq_recv(fd, buf, req[REQ_RSP]))
			errx(1, "the server closed the connection");
		after = txq_now();
		if (req[REQ_VERIFY] && !txq_payload_ok(&in, buf, req[REQ_RSP]))
			errx(1, "wrong response at byte %llu", in.off);
		out.off += req[REQ_SIZE];
		in.off += req[REQ_RSP];
		if (before >= first && before < last)
			ns[n++] = after - before;
	} while (after < last && n < max);
	free(buf);
	free(in.buf);
	free(out.buf);
	return n;
}

static void usage(int ret)
{
	fprintf(ret ? stderr : stdout,
		"Usage: txq_rr [options] ADDRESS PORT\n"
		"  -c, --count N         stop after N transactions\n"
		"  -g, --gap-us MEAN     wait before each (0)\n"
		"  -N, --no-verify       do not check the payload\n"
		"  -o, --raw FILE        duration of each, ns\n"
		"  -q, --request BYTES   (1)\n"
		"  -r, --response BYTES  (1)\n"
		"  -S, --seed N          of payload, gaps and resampling (1)\n"
		"  -t, --time SECONDS    measured (5)\n"
		"  -u, --uniform         gaps of 0 to 2 x MEAN, not exponential\n"
		"  -w, --warmup SECONDS  before that (0.5)\n");
	exit(ret);
}

int main(int argc, char **argv)
{
	static const struct option opts[] = {
		{ "count", required_argument, NULL, 'c' },
		{ "gap-us", required_argument, NULL, 'g' },
		{ "help", no_argument, NULL, 'h' },
		{ "no-verify", no_argument, NULL, 'N' },
		{ "raw", required_argument, NULL, 'o' },
		{ "request", required_argument, NULL, 'q' },
		{ "response", required_argument, NULL, 'r' },
		{ "seed", required_argument, NULL, 'S' },
		{ "time", required_argument, NULL, 't' },
		{ "uniform", no_argument, NULL, 'u' },
		{ "warmup", required_argument, NULL, 'w' },
		{}
	};
	__u64 *ns, word, time = 5 * TXQ_NSEC;
	size_t n, max = MAX_SAMPLES;
	const char *raw = NULL;
	struct txq_stats st;
	struct gap g = {};
	int c, fd;

	req[REQ_WARMUP] = TXQ_NSEC / 2;
	while ((c = getopt_long(argc, argv, "c:g:hNo:q:r:S:t:uw:", opts,
				NULL)) != -1) {
		switch (c) {
		case 'c':
			max = txq_arg("count", optarg, 1, MAX_SAMPLES);
			break;
		case 'g':
			g.mean = 1000 * txq_arg("gap-us", optarg, 0, 10000000);
			break;
		case 'h':
			usage(0);
			break;
		case 'N':
			req[REQ_VERIFY] = 0;
			break;
		case 'o':
			raw = optarg;
			break;
		case 'q':
			req[REQ_SIZE] = txq_arg("request", optarg, 1,
						TXQ_MAX_MSG);
			break;
		case 'r':
			req[REQ_RSP] = txq_arg("response", optarg, 1,
					       TXQ_MAX_MSG);
			break;
		case 'S':
			req[REQ_SEED] = txq_arg("seed", optarg, 0, ~0ULL);
			break;
		case 't':
			time = txq_arg_ns("time", optarg);
			break;
		case 'u':
			g.uniform = true;
			break;
		case 'w':
			req[REQ_WARMUP] = txq_arg_ns("warmup", optarg);
			break;
		default:
			usage(2);
		}
	}
	if (optind + 2 != argc)
		usage(2);

	ns = malloc(max * sizeof(*ns));
	if (!ns)
		err(1, "malloc");
	txq_watchdog(req[REQ_WARMUP] + time);
	fd = txq_connect(argv[optind], argv[optind + 1]);
	txq_put(fd, req, REQ_WORDS);
	if (!txq_get(fd, &word, 1) || word != TXQ_MAGIC)
		errx(1, "not a txq_server at the other end");
	g.rand = req[REQ_SEED];
	n = run(fd, &g, time, ns, max);
	close(fd);

	txq_stats(&st, ns, n, req[REQ_SEED]);
	txq_stats_print(&st);
	printf("\n");
	if (raw)
		txq_raw(raw, ns, n);
	return 0;
}
