/* SPDX-License-Identifier: MIT
 * delayed_switch MBIT MICROSECONDS NAMESPACE... - an Ethernet switch in user space, for tests
 * of what crosses a network, on kernels that cannot delay packets themselves.
 *
 * Each network namespace gets a device 'wire' (TAP). A frame is sent over a link of MBIT Mbit/s
 * into the switch, reaches the other side MICROSECONDS later and leaves over a link of the same
 * speed. Frames that do not fit into a full port are dropped, as switches do. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { PORTS = 16, LONGEST_FRAME = 9216, QUEUED = 128, ADDRESS = 6 };

struct frame {
    int64_t due; /* when its last bit has arrived, in nanoseconds */
    size_t bytes;
    unsigned char data[LONGEST_FRAME];
};

/* Times are monotone in a queue: a link carries one frame after the other. */
struct port {
    int device;
    int64_t in_free, out_free; /* when the links from and to the host are free again */
    size_t first, queued;
    struct frame queue[QUEUED];
};

static struct port ports[PORTS];
static size_t port_count;
static double ns_per_byte;
static int64_t delay;

static _Noreturn void fail(const char *what)
{
    fprintf(stderr, "delayed_switch: %s: %s\n", what, strerror(errno));
    exit(1);
}

static int64_t now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* The address of the device ends with the number of its port, so that there is nothing to
 * learn. */
static int open_device(const char *space, size_t port)
{
    struct ifreq request = {.ifr_flags = IFF_TAP | IFF_NO_PI};
    char path[256];

    snprintf(path, sizeof path, "/run/netns/%s", space);
    const int entered = open(path, O_RDONLY | O_CLOEXEC);
    if (entered < 0 || setns(entered, CLONE_NEWNET) != 0)
        fail(path);
    close(entered);
    const int device = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (device < 0)
        fail("/dev/net/tun");
    strcpy(request.ifr_name, "wire");
    if (ioctl(device, TUNSETIFF, &request) != 0)
        fail("TUNSETIFF");
    const char address[ADDRESS] = {2, 0, 0, 0, 0, (char)port};
    request.ifr_hwaddr.sa_family = ARPHRD_ETHER;
    memcpy(request.ifr_hwaddr.sa_data, address, sizeof address);
    if (ioctl(device, SIOCSIFHWADDR, &request) != 0)
        fail("SIOCSIFHWADDR");
    return device;
}

static void enqueue(struct port *to, const unsigned char *data, size_t bytes, int64_t arrives)
{
    if (to->queued == QUEUED)
        return;
    struct frame *frame = &to->queue[(to->first + to->queued++) % QUEUED];

    to->out_free = later(to->out_free, arrives) + (int64_t)((double)bytes * ns_per_byte);
    frame->due = to->out_free;
    frame->bytes = bytes;
    memcpy(frame->data, data, bytes);
}

/* An odd first byte is a broadcast: to all other ports. */
static void receive(struct port *from)
{
    unsigned char data[LONGEST_FRAME];
    ssize_t got;

    while ((got = read(from->device, data, sizeof data)) > ADDRESS) {
        const size_t bytes = (size_t)got;
        from->in_free = later(from->in_free, now()) + (int64_t)((double)bytes * ns_per_byte);
        for (size_t i = 0; i < port_count; i++)
            if (&ports[i] != from && ((data[0] & 1) != 0 || data[ADDRESS - 1] == i))
                enqueue(&ports[i], data, bytes, from->in_free + delay);
    }
}

/* What the device does not take is lost, as on a wire. */
static void deliver(struct port *to)
{
    while (to->queued > 0 && to->queue[to->first].due <= now()) {
        struct frame *frame = &to->queue[to->first];

        if (write(to->device, frame->data, frame->bytes) < 0 && errno != EIO &&
            errno != EAGAIN && errno != ENOBUFS)
            fail("write");
        to->first = (to->first + 1) % QUEUED;
        to->queued--;
    }
}

static void wait_for_frames(void)
{
    struct pollfd polls[PORTS];
    int64_t next = INT64_MAX;

    for (size_t i = 0; i < port_count; i++) {
        polls[i] = (struct pollfd){.fd = ports[i].device, .events = POLLIN};
        if (ports[i].queued > 0 && ports[i].queue[ports[i].first].due < next)
            next = ports[i].queue[ports[i].first].due;
    }
    const int64_t left = later(next - now(), 0);
    const struct timespec timeout = {left / 1000000000, left % 1000000000};
    if (ppoll(polls, (nfds_t)port_count, next == INT64_MAX ? NULL : &timeout, NULL) < 0 &&
        errno != EINTR)
        fail("ppoll");
}

int main(int argc, char **argv)
{
    const double mbit = argc > 1 ? atof(argv[1]) : 0.0, us = argc > 2 ? atof(argv[2]) : -1.0;

    if (argc < 4 || argc - 3 > PORTS || !(mbit > 0.0) || !(us >= 0.0)) {
        fprintf(stderr, "usage: delayed_switch MBIT MICROSECONDS NAMESPACE... (at most %d)\n",
                PORTS);
        return 2;
    }
    ns_per_byte = 8000.0 / mbit;
    delay = (int64_t)(us * 1000.0);
    prctl(PR_SET_TIMERSLACK, 1UL);
    for (int i = 3; i < argc; i++, port_count++)
        ports[port_count].device = open_device(argv[i], port_count);
    for (;;) {
        wait_for_frames();
        for (size_t i = 0; i < port_count; i++)
            receive(&ports[i]);
        for (size_t i = 0; i < port_count; i++)
            deliver(&ports[i]);
    }
}
