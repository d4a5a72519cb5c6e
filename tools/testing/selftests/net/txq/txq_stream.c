// SPDX-License-Identifier: GPL-2.0
/*
 * TCP streams to (or, with --reverse, from) txq_server.
 *
 * One process a stream, all started at once; prints "started" and, at the
 * end, one line of JSON: goodput at the receiver, in all and by interval,
 * the durations of the send() calls, and the load of this machine's CPUs.
 * SIGTERM ends the run early, with the figures it has, but not in reverse.
 */

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "txq.h"

#define MAX_STREAMS	256
#define MAX_SAMPLES	(4 << 20)	/* of all streams */
#define MAX_PHASE_NS	20000000
#define CPU_PERIOD_NS	50000000

struct stream {
	struct txq_result res;
	size_t samples;
	__u64 *ns;
};

struct shared {
	int stop;
	struct stream stream[MAX_STREAMS];
};

static struct shared *shared;
static __u64 req[REQ_WORDS] = {
	[REQ_MAGIC] = TXQ_MAGIC,
	[REQ_SIZE] = 65536,
	[REQ_SEED] = 1,
	[REQ_VERIFY] = 1,
	[REQ_IVALS] = 10,
};

static __u64 streams = 1;

static void *share(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		err(1, "mmap");
	return p;
}

static void on_term(int sig)
{
	(void)sig;
	shared->stop = 1;
}

static void run_stream(struct stream *s, const char *addr, const char *port,
		       int ready, int go)
{
	__u64 word;
	char c = 0;
	int fd;

	fd = txq_connect(addr, port);
	req[REQ_SEED] += s - shared->stream;
	if (req[REQ_KIND] == TXQ_SINK)
		txq_sndbuf(fd, req[REQ_SNDBUF]);
	txq_put(fd, req, REQ_WORDS);
	if (!txq_get(fd, &word, 1) || word != TXQ_MAGIC)
		errx(1, "not a txq_server at the other end");

	if (write(ready, &c, 1) != 1 || read(go, &c, 1) != 0)
		err(1, "start");
	if (req[REQ_KIND] == TXQ_SINK) {
		s->samples = txq_transmit(fd, req, &shared->stop, s->ns,
					  MAX_SAMPLES / streams);
		if (!txq_get_result(fd, &s->res))
			errx(1, "no result from the server");
	} else {
		txq_put(fd, &word, 1);
		txq_receive(fd, req, &s->res);
	}
	close(fd);
}

/* Processes that have connected all wait for the other end of @go to close */
static int fork_streams(const char *addr, const char *port)
{
	int ready[2], go[2];
	pid_t parent = getpid();
	__u64 i;
	char c;

	if (pipe(ready) || pipe(go))
		err(1, "pipe");
	for (i = 0; i < streams; i++) {
		struct stream *s = &shared->stream[i];

		s->ns = share(MAX_SAMPLES / streams * sizeof(*s->ns));
		switch (fork()) {
		case -1:
			err(1, "fork");
		case 0:
			signal(SIGTERM, SIG_DFL);
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			if (getppid() != parent)
				_exit(1);
			close(ready[0]);
			close(go[1]);
			run_stream(s, addr, port, ready[1], go[0]);
			exit(0);
		}
	}
	close(ready[1]);
	close(go[0]);
	for (i = 0; i < streams; i++)
		if (read(ready[0], &c, 1) != 1)
			errx(1, "stream failed to start");
	close(ready[0]);
	return go[1];
}

/*
 * The finest that the kernel tells user space of its idle time: counted in
 * ns where the tick stops in idle, but told in clock ticks, mostly 10 ms.
 * Seconds, iowait included, all CPUs.
 *
 * A platform that knows better has a counter of busy ns: $TXQ_BUSY_FILE.
 */
static bool idle_time(int fd, double *idle)
{
	unsigned long long idle_ticks, iowait_ticks, busy;
	char *line;
	char buf[256];
	ssize_t n;

	n = pread(fd, buf, sizeof(buf) - 1, 0);
	if (n <= 0)
		return false;
	buf[n] = 0;
	line = strstr(buf, "busy_ns ");
	if (line && sscanf(line, "busy_ns %llu", &busy) == 1) {
		*idle = sysconf(_SC_NPROCESSORS_ONLN) * (txq_now() / 1e9) -
			busy / 1e9;
		return true;
	}
	if (sscanf(buf, "cpu %*u %*u %*u %llu %llu",
		   &idle_ticks, &iowait_ticks) != 2)
		return false;
	*idle = (double)(idle_ticks + iowait_ticks) / sysconf(_SC_CLK_TCK);
	return true;
}

/*
 * Sleep from start to end and return how many CPUs were busy meanwhile, or
 * -1.  Two readings a second apart would be off by up to 1 % of a CPU, for
 * their granularity; a line through some twenty is off by a few tenths.
 */
static double cpu_load(__u64 start, __u64 end)
{
	double sx = 0, sy = 0, sxx = 0, sxy = 0, x, y, slope, first = 0;
	const char *path = getenv("TXQ_BUSY_FILE");
	int fd = open(path ? path : "/proc/stat", O_RDONLY | O_CLOEXEC);
	unsigned int n = 0;
	__u64 when;

	for (when = start; when <= end && !shared->stop;
	     when += CPU_PERIOD_NS) {
		txq_sleep_until(when);
		if (fd < 0 || shared->stop || !idle_time(fd, &y))
			continue;
		x = (txq_now() - start) / 1e9;
		if (!n++)
			first = y;
		y -= first;
		sx += x;
		sy += y;
		sxx += x * x;
		sxy += x * y;
	}
	if (!shared->stop)
		txq_sleep_until(end);
	close(fd);
	if (n < 3)
		return -1;
	slope = (n * sxy - sx * sy) / (n * sxx - sx * sx);
	x = sysconf(_SC_NPROCESSORS_ONLN) - slope;
	return x > 0 ? x : 0;
}

static void wait_streams(void)
{
	bool failed = false;
	int status;
	pid_t pid;

	for (;;) {
		pid = wait(&status);
		if (pid < 0 && errno == EINTR)
			continue;
		if (pid < 0)
			break;
		if (!WIFEXITED(status) || WEXITSTATUS(status))
			failed = true;
	}
	if (failed)
		errx(1, "stream failed");
}

/* Returns the number of intervals that all streams have */
static __u64 check_streams(void)
{
	__u64 i, ivals = req[REQ_IVALS];

	for (i = 0; i < streams; i++) {
		const struct txq_result *res = &shared->stream[i].res;

		if (res->bad)
			errx(1, "stream %llu: wrong payload at byte %llu", i,
			     res->bad - 1);
		if (!res->total)
			errx(1, "stream %llu: nothing received", i);
		if (res->ivals < ivals)
			ivals = res->ivals;
	}
	if (ivals < req[REQ_IVALS] && !shared->stop)
		errx(1, "stream ended after %llu of %llu intervals", ivals,
		     req[REQ_IVALS]);
	return ivals;
}

static void report(const char *raw, __u64 seed, double cpu)
{
	__u64 i, k, ivals, sum, bytes = 0;
	struct txq_stats st;
	size_t n = 0;
	__u64 *ns;

	ivals = check_streams();
	for (i = 0; i < streams; i++)
		n += shared->stream[i].samples;
	ns = share((n + 1) * sizeof(*ns));
	for (n = 0, i = 0; i < streams; i++) {
		const struct stream *s = &shared->stream[i];

		memcpy(ns + n, s->ns, s->samples * sizeof(*ns));
		n += s->samples;
	}

	printf("{\"mbps\": [");
	for (k = 0; k < ivals; k++) {
		for (sum = 0, i = 0; i < streams; i++)
			sum += shared->stream[i].res.bytes[k];
		bytes += sum;
		printf("%s%.3f", k ? ", " : "", 8e3 * sum / req[REQ_IVAL]);
	}
	printf("], \"bytes\": %llu, ", bytes);
	if (cpu >= 0)
		printf("\"cpu\": %.4f, ", cpu);
	else
		printf("\"cpu\": null, ");
	printf("\"send\": ");
	txq_stats(&st, ns, n, seed);
	txq_stats_print(&st);
	printf("}\n");
	if (raw)
		txq_raw(raw, ns, n);
}

static void usage(int ret)
{
	fprintf(ret ? stderr : stdout,
		"Usage: txq_stream [options] ADDRESS PORT\n"
		"  -b, --sndbuf BYTES    SO_SNDBUF (default: the kernel's)\n"
		"  -i, --intervals N     to divide the time into (10)\n"
		"  -m, --message BYTES   of a send() (65536)\n"
		"  -n, --streams N       at once (1)\n"
		"  -N, --no-verify       do not check the payload\n"
		"  -o, --raw FILE        duration of each send(), ns\n"
		"  -R, --reverse         the server sends\n"
		"  -S, --seed N          of payload, phase and resampling (1)\n"
		"  -t, --time SECONDS    measured (5)\n"
		"  -w, --warmup SECONDS  before that (0.5)\n");
	exit(ret);
}

int main(int argc, char **argv)
{
	static const struct option opts[] = {
		{ "help", no_argument, NULL, 'h' },
		{ "intervals", required_argument, NULL, 'i' },
		{ "message", required_argument, NULL, 'm' },
		{ "no-verify", no_argument, NULL, 'N' },
		{ "raw", required_argument, NULL, 'o' },
		{ "reverse", no_argument, NULL, 'R' },
		{ "seed", required_argument, NULL, 'S' },
		{ "sndbuf", required_argument, NULL, 'b' },
		{ "streams", required_argument, NULL, 'n' },
		{ "time", required_argument, NULL, 't' },
		{ "warmup", required_argument, NULL, 'w' },
		{}
	};
	__u64 time = 5 * TXQ_NSEC, seed, rand, start;
	const char *raw = NULL;
	double cpu;
	int c, go;

	req[REQ_KIND] = TXQ_SINK;
	req[REQ_WARMUP] = TXQ_NSEC / 2;
	while ((c = getopt_long(argc, argv, "b:hi:m:n:No:RS:t:w:", opts,
				NULL)) != -1) {
		switch (c) {
		case 'b':
			req[REQ_SNDBUF] = txq_arg("sndbuf", optarg, 1, 1 << 30);
			break;
		case 'h':
			usage(0);
			break;
		case 'i':
			req[REQ_IVALS] = txq_arg("intervals", optarg, 1,
						 TXQ_MAX_IVALS);
			break;
		case 'm':
			req[REQ_SIZE] = txq_arg("message", optarg, 1,
						TXQ_MAX_MSG);
			break;
		case 'n':
			streams = txq_arg("streams", optarg, 1, MAX_STREAMS);
			break;
		case 'N':
			req[REQ_VERIFY] = 0;
			break;
		case 'o':
			raw = optarg;
			break;
		case 'R':
			req[REQ_KIND] = TXQ_SOURCE;
			break;
		case 'S':
			req[REQ_SEED] = txq_arg("seed", optarg, 0, ~0ULL);
			break;
		case 't':
			time = txq_arg_ns("time", optarg);
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
	req[REQ_IVAL] = time / req[REQ_IVALS];
	if (!req[REQ_IVAL])
		errx(2, "time: too short");

	shared = share(sizeof(*shared));
	signal(SIGTERM, on_term);
	txq_watchdog(req[REQ_WARMUP] + time);
	seed = req[REQ_SEED];
	rand = seed;
	go = fork_streams(argv[optind], argv[optind + 1]);
	txq_sleep(txq_uniform(&rand) * MAX_PHASE_NS);
	close(go);
	printf("started\n");
	fflush(stdout);

	start = txq_now() + req[REQ_WARMUP];
	cpu = cpu_load(start, start + req[REQ_IVAL] * req[REQ_IVALS]);
	wait_streams();
	report(raw, seed, cpu);
	return 0;
}
