/*
 * headroom-guard --proxy FOLDER ADDRESS FIRST LAST FROM HOLD_MS MAX_HELD STATE TARGET/PROTOCOL…: the forwarding proxy of one
 * attempt whose processes run while its VRAM is away. FOLDER is that of its guard. For each TARGET (1..65535; PROTOCOL: tcp,
 * http, or engine: HTTP of an inference engine, whose administrative paths are refused) it listens at ADDRESS on a port of FIRST..LAST, the first free one from FROM on, and forwards to the socket of
 * the task that listens on TARGET (proxy-task.c). STATE: `hold` or `pass` (proxy-control.c).
 *
 * Answers with one line, `ok PORT…` or `error …`, and then runs until the guard ends or a server says so: it
 * outlives its server, as the guard does, and no request waits longer than HOLD_MS. docs/decisions/0125 explains the design.
 */
#include "proxy.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BACKLOG 1024
#ifndef SO_BUF_LOCK
#define SO_BUF_LOCK 72
#endif
#define EVENTS 64
#define MAX_OPEN 1000
#define FILES_PER_CONNECTION 6 /* two sockets, two pipes */
#define OTHER_FILES 128
#define FULL_MS 100 /* without free files no client is accepted for so long */

struct proxy proxy = {.epoll = -1};

/* ---- epoll ---- */

void watch_begin(struct watch *watch, uint32_t events) {
  struct epoll_event event = {.events = events, .data.ptr = watch};
  watch->events = events;
  if (epoll_ctl(proxy.epoll, EPOLL_CTL_ADD, watch->fd, &event) != 0) abort();
}

void watch_change(struct watch *watch, uint32_t events) {
  struct epoll_event event = {.events = events, .data.ptr = watch};
  if (watch->is_ignored || watch->events == events) return;
  watch->events = events;
  if (epoll_ctl(proxy.epoll, EPOLL_CTL_MOD, watch->fd, &event) != 0) abort();
}

void watch_ignore(struct watch *watch) {
  if (!watch->is_ignored) epoll_ctl(proxy.epoll, EPOLL_CTL_DEL, watch->fd, NULL);
  watch->is_ignored = true;
}

void watch_end(struct watch *watch) {
  if (watch->fd >= 0) close(watch->fd);
  watch->fd = -1;
}

/* ---- the beginning ---- */

static _Noreturn void fail(const char *what, const char *why) {
  printf("error %s%s%s\n", what, *why == 0 ? "" : ": ", why);
  fflush(stdout);
  exit(1);
}

static long number(const char *text, long least, long most) {
  char *end;
  errno = 0;
  long value = strtol(text, &end, 10);
  if (errno != 0 || end == text || *end != 0 || value < least || value > most) fail("not a number in its range", text);
  return value;
}

static socklen_t read_address(const char *text, struct sockaddr_storage *address) {
  struct sockaddr_in *ip4 = (struct sockaddr_in *)address;
  struct sockaddr_in6 *ip6 = (struct sockaddr_in6 *)address;
  *address = (struct sockaddr_storage){0};
  if (inet_pton(AF_INET, text, &ip4->sin_addr) == 1) {
    ip4->sin_family = AF_INET;
    return sizeof *ip4;
  }
  if (inet_pton(AF_INET6, text, &ip6->sin6_addr) != 1) fail("not an IP address", text);
  ip6->sin6_family = AF_INET6;
  return sizeof *ip6;
}

/* A client may send that much before its bytes are read. The kernel takes the size over to each connection, and makes it
 * larger for those that are read, unless it is locked (before Linux 5.14 it cannot be unlocked, and the limit is the
 * kernel's own, 128 KiB). */
static void limit_unread(int listening) {
  int bytes = HELD_BYTES / 2, unlocked = 0; /* the kernel doubles it */
  socklen_t size = sizeof unlocked;
  if (getsockopt(listening, SOL_SOCKET, SO_BUF_LOCK, &unlocked, &size) != 0) return;
  setsockopt(listening, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
  unlocked = 0;
  setsockopt(listening, SOL_SOCKET, SO_BUF_LOCK, &unlocked, sizeof unlocked);
}

static int listen_at(const struct sockaddr_storage *address, socklen_t size, long port) {
  struct sockaddr_storage at = *address;
  int on = 1, made = socket(at.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  /* The port is at the same place in both. */
  ((struct sockaddr_in *)&at)->sin_port = htons((uint16_t)port);
  if (made < 0) return -1;
  setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (at.ss_family == AF_INET6) setsockopt(made, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
  limit_unread(made);
  if (bind(made, (struct sockaddr *)&at, size) == 0 && listen(made, BACKLOG) == 0) return made;
  int error = errno;
  close(made);
  errno = error;
  return -1;
}

struct range { long first, last, from; };

/* The next port begins behind this one. */
static void open_port(struct port *port, struct range *range) {
  struct sockaddr_storage address;
  socklen_t size = read_address(proxy.address, &address);
  long count = range->last - range->first + 1;
  for (long tried = 0; tried < count; tried++) {
    long at = range->first + (range->from - range->first + tried) % count;
    int made = listen_at(&address, size, at);
    if (made < 0 && errno != EADDRINUSE) fail(proxy.address, strerror(errno));
    if (made < 0) continue;
    port->listen = (struct watch){.kind = ON_PORT, .fd = made, .of = port};
    port->port = (uint32_t)at;
    range->from = at == range->last ? range->first : at + 1;
    return watch_begin(&port->listen, EPOLLIN);
  }
  fail("no port of the range is free", "");
}

static void read_target(struct port *port, const char *text) {
  char target[8];
  size_t size = strcspn(text, "/");
  if (size >= sizeof target) fail("not a port", text);
  memcpy(target, text, size);
  target[size] = 0;
  port->target = (uint32_t)number(target, 1, 65535);
  port->is_engine = strcmp(text + size, "/engine") == 0;
  port->is_http = port->is_engine || strcmp(text + size, "/http") == 0;
  if (!port->is_http && strcmp(text + size, "/tcp") != 0) fail("not a protocol", text);
}

static void allow_files(void) {
  struct rlimit files;
  proxy.max_open = MAX_OPEN;
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  if (files.rlim_cur < MAX_OPEN * FILES_PER_CONNECTION + OTHER_FILES)
    proxy.max_open = files.rlim_cur > OTHER_FILES ? (files.rlim_cur - OTHER_FILES) / FILES_PER_CONNECTION : 1;
}

/* Of the rights of root it keeps those to see the sockets of a task of another user, and to enter its network. */
static void drop_rights(void) {
  static const int kept[] = {CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH, CAP_SYS_ADMIN};
  struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  struct __user_cap_data_struct rights[2] = {0}, mine[2] = {0};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (syscall(SYS_capget, &header, mine) != 0) return;
  for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) rights[kept[i] / 32].permitted |= 1u << kept[i] % 32;
  for (size_t i = 0; i < 2; i++) {
    rights[i].permitted &= mine[i].permitted;
    rights[i].effective = rights[i].permitted;
  }
  if (syscall(SYS_capset, &header, rights) != 0) fail("its rights cannot be dropped", strerror(errno));
}

/* ---- its life ---- */

static void on_event(struct watch *watch, uint32_t events) {
  if (watch->fd < 0) return; /* ended by an earlier event of the same batch */
  switch (watch->kind) {
    case ON_PORT: return accept_clients(watch->of);
    case ON_CONTROL: return control_accept(watch);
    case ON_SERVER: return control_hear(watch);
    case ON_END: return on_end(watch, events);
    case ON_TASK: proxy.is_ending = true;
  }
}

static bool listen_again(void) {
  bool is_full = false;
  for (size_t i = 0; i < proxy.port_count; i++) {
    if (!proxy.ports[i].is_full) continue;
    is_full = true;
    proxy.ports[i].is_full = false;
    watch_change(&proxy.ports[i].listen, EPOLLIN);
  }
  return is_full;
}

static bool is_any_full(void) {
  for (size_t i = 0; i < proxy.port_count; i++)
    if (proxy.ports[i].is_full) return true;
  return false;
}

static int run(void) {
  struct epoll_event events[EVENTS];
  while (!proxy.is_ending) {
    int wait = end_overdue();
    if (is_any_full() && (wait < 0 || wait > FULL_MS)) wait = FULL_MS;
    int count = epoll_wait(proxy.epoll, events, EVENTS, wait);
    if (count < 0 && errno != EINTR) return 1;
    for (int i = 0; i < count; i++) on_event(events[i].data.ptr, events[i].events);
    free_ended();
    if (count == 0) listen_again();
  }
  unlink("proxy");
  return 0;
}

int run_proxy(int count, char **argv) {
  static const int ignored[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE};
  if (count < 9 || count > 8 + PROXY_PORTS) fail("usage: headroom-guard --proxy FOLDER ADDRESS FIRST LAST FROM HOLD_MS MAX_HELD STATE TARGET/PROTOCOL…", "");
  proxy.address = argv[1];
  struct range range = {.first = number(argv[2], 1, 65535)};
  range.last = number(argv[3], range.first, 65535);
  range.from = number(argv[4], range.first, range.last);
  proxy.hold_ms = number(argv[5], 1, 3600000);
  proxy.max_held = (size_t)number(argv[6], 1, MAX_OPEN);
  proxy.is_out = strcmp(argv[7], "hold") == 0;
  if (!proxy.is_out && strcmp(argv[7], "pass") != 0) fail("not a state", argv[7]);
  proxy.port_count = (size_t)count - 8;
  for (size_t i = 0; i < proxy.port_count; i++) read_target(&proxy.ports[i], argv[8 + i]);
  syscall(SYS_close_range, 3, ~0U, 0);
  for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++) signal(ignored[i], SIG_IGN);
  setsid();
  allow_files();
  proxy.epoll = epoll_create1(EPOLL_CLOEXEC);
  if (proxy.epoll < 0) fail("epoll", strerror(errno));
  if (chdir(argv[0]) != 0) fail(argv[0], strerror(errno));
  struct watch task = {.kind = ON_TASK, .fd = task_find()};
  if (task.fd < 0) fail("the task has ended", "");
  watch_begin(&task, EPOLLIN);
  const char *why = control_open();
  if (why != NULL) fail("its control socket", why);
  for (size_t i = 0; i < proxy.port_count; i++) open_port(&proxy.ports[i], &range);
  drop_rights();
  printf("ok");
  for (size_t i = 0; i < proxy.port_count; i++) printf(" %u", proxy.ports[i].port);
  printf("\n");
  if (fflush(stdout) != 0) return 1;
  int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int i = 0; i < 3; i++) dup2(null, i);
  close(null);
  return run();
}
