// SPDX-License-Identifier: GPL-2.0
/*
 * The peer's end of all txq tests: prints "port N" and serves txq_stream and
 * txq_rr until killed.
 *
 * With --control the first connection is the test's own.  When that goes
 * away, for whatever reason, so does the server with all its children: a
 * test that is killed leaves nothing behind on a remote machine.  On an "s"
 * it answers with the packets that the interface has received and sent.
 * Only a receiver counts frames as they were on the wire: with segmentation
 * offload many a driver counts what it was given to send.
 */

#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "txq.h"

#define CONTROL_SECS	30	/* for the control connection to come */

static char ifname[64];

static int serve_socket(const char *port)
{
	struct sockaddr_in6 a6 = { .sin6_family = AF_INET6 };
	struct sockaddr_in a4 = { .sin_family = AF_INET };
	socklen_t len = sizeof(a6);
	int fd, ret, on = 1, off = 0;

	a6.sin6_port = htons(txq_arg("port", port, 0, 65535));
	a4.sin_port = a6.sin6_port;
	fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0) {
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
		ret = bind(fd, (struct sockaddr *)&a6, sizeof(a6));
	} else {
		fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (fd < 0)
			err(1, "socket");
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
		ret = bind(fd, (struct sockaddr *)&a4, sizeof(a4));
	}
	if (ret)
		err(1, "bind to port %s", port);
	if (listen(fd, 128))
		err(1, "listen");
	if (getsockname(fd, (struct sockaddr *)&a6, &len))
		err(1, "getsockname");
	/* The port is at the same place in both families. */
	printf("port %u\n", ntohs(a6.sin6_port));
	fflush(stdout);
	return fd;
}

static bool same_addr(const struct sockaddr_in6 *a, const struct sockaddr *b)
{
	const struct sockaddr_in6 *b6 = (const void *)b;
	const struct sockaddr_in *b4 = (const void *)b;

	if (a->sin6_family == AF_INET && b->sa_family == AF_INET)
		return ((const struct sockaddr_in *)a)->sin_addr.s_addr ==
			b4->sin_addr.s_addr;
	if (a->sin6_family != AF_INET6)
		return false;
	if (b->sa_family == AF_INET)
		return IN6_IS_ADDR_V4MAPPED(&a->sin6_addr) &&
			!memcmp(a->sin6_addr.s6_addr + 12, &b4->sin_addr, 4);
	return b->sa_family == AF_INET6 &&
		!memcmp(&a->sin6_addr, &b6->sin6_addr, 16);
}

/* Of the interface that has the address the test connected to */
static void find_ifname(int fd)
{
	struct sockaddr_in6 own = {};
	socklen_t len = sizeof(own);
	struct ifaddrs *list, *i;

	if (getsockname(fd, (struct sockaddr *)&own, &len))
		err(1, "getsockname");
	if (getifaddrs(&list))
		err(1, "getifaddrs");
	for (i = list; i; i = i->ifa_next)
		if (i->ifa_addr && same_addr(&own, i->ifa_addr))
			snprintf(ifname, sizeof(ifname), "%s", i->ifa_name);
	freeifaddrs(list);
}

/* /proc/net/dev shows the reader's namespace, which /sys need not do */
static void answer_stats(int fd)
{
	__u64 words[2] = { 0, 0 };
	char line[512], *colon;
	FILE *f;

	f = fopen("/proc/net/dev", "r");
	if (!f)
		err(1, "/proc/net/dev");
	while (fgets(line, sizeof(line), f)) {
		colon = strchr(line, ':');
		if (!colon)
			continue;
		*colon = 0;
		if (!strcmp(line + strspn(line, " "), ifname))
			sscanf(colon + 1,
			       "%*s %llu %*s %*s %*s %*s %*s %*s %*s %llu",
			       &words[0], &words[1]);
	}
	fclose(f);
	txq_put(fd, words, 2);
}

static void echo(int fd, const __u64 *req)
{
	struct txq_payload in, out;
	void *buf;

	buf = malloc(req[REQ_SIZE]);
	if (!buf)
		err(1, "malloc");
	txq_payload_init(&in, req[REQ_SEED], req[REQ_SIZE]);
	txq_payload_init(&out, req[REQ_SEED] + 1, req[REQ_RSP]);
	while (txq_recv(fd, buf, req[REQ_SIZE])) {
		if (req[REQ_VERIFY] && !txq_payload_ok(&in, buf, req[REQ_SIZE]))
			errx(1, "wrong request at byte %llu", in.off);
		in.off += req[REQ_SIZE];
		txq_send(fd, txq_payload_at(&out), req[REQ_RSP]);
		out.off += req[REQ_RSP];
	}
}

static void serve(int fd)
{
	static struct txq_result res;
	__u64 req[REQ_WORDS], word = TXQ_MAGIC;

	if (!txq_get(fd, req, REQ_WORDS))
		errx(1, "no request");
	if (req[REQ_MAGIC] != TXQ_MAGIC || !req[REQ_IVAL] ||
	    req[REQ_IVALS] > TXQ_MAX_IVALS || req[REQ_SIZE] > TXQ_MAX_MSG ||
	    req[REQ_RSP] > TXQ_MAX_MSG || !req[REQ_SIZE])
		errx(1, "bad request");
	txq_sndbuf(fd, req[REQ_SNDBUF]);
	txq_put(fd, &word, 1);

	switch (req[REQ_KIND]) {
	case TXQ_SINK:
		txq_receive(fd, req, &res);
		txq_put_result(fd, &res);
		break;
	case TXQ_SOURCE:
		if (txq_get(fd, &word, 1))
			txq_transmit(fd, req, NULL, NULL, 0);
		break;
	case TXQ_ECHO:
		echo(fd, req);
		break;
	default:
		errx(1, "bad request");
	}
	/* Let the other end close first: no reset can overtake the data. */
	while (recv(fd, &word, sizeof(word), 0) > 0)
		;
}

static void child(int fd, pid_t parent)
{
	int on = 1;

	signal(SIGCHLD, SIG_DFL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		exit(1);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	serve(fd);
	exit(0);
}

static void control_event(int fd)
{
	char c;

	if (recv(fd, &c, 1, 0) <= 0)
		exit(0);
	if (c == 's')
		answer_stats(fd);
}

static void usage(int ret)
{
	fprintf(ret ? stderr : stdout,
		"Usage: txq_server [-c|--control] [-p|--port PORT]\n");
	exit(ret);
}

int main(int argc, char **argv)
{
	static const struct option opts[] = {
		{ "control", no_argument, NULL, 'c' },
		{ "help", no_argument, NULL, 'h' },
		{ "port", required_argument, NULL, 'p' },
		{}
	};
	struct pollfd pfd[2] = { { .events = POLLIN }, { .events = POLLIN } };
	const char *port = "0";
	bool control = false;
	pid_t me = getpid();
	int c, fd, on = 1;

	while ((c = getopt_long(argc, argv, "chp:", opts, NULL)) != -1) {
		switch (c) {
		case 'c':
			control = true;
			break;
		case 'h':
			usage(0);
			break;
		case 'p':
			port = optarg;
			break;
		default:
			usage(2);
		}
	}
	if (optind != argc)
		usage(2);

	signal(SIGCHLD, SIG_IGN);
	pfd[0].fd = serve_socket(port);
	pfd[1].fd = -1;
	if (control)
		alarm(CONTROL_SECS);

	for (;;) {
		if (poll(pfd, 2, -1) < 0) {
			if (errno == EINTR)
				continue;
			err(1, "poll");
		}
		if (pfd[1].revents)
			control_event(pfd[1].fd);
		if (!pfd[0].revents)
			continue;
		fd = accept4(pfd[0].fd, NULL, NULL, SOCK_CLOEXEC);
		if (fd < 0)
			continue;
		if (control && pfd[1].fd < 0) {
			alarm(0);
			/* A test machine that lost its power counts as gone */
			setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on,
				   sizeof(on));
			find_ifname(fd);
			pfd[1].fd = fd;
			continue;
		}
		switch (fork()) {
		case -1:
			warn("fork");
			break;
		case 0:
			child(fd, me);
		}
		close(fd);
	}
}
