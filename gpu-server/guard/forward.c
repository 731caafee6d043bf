/*
 * headroom-guard --forward PORT PIDS: connects a client (channel.c) to a TCP port on which one of these processes
 * listens, in the network namespace of that process. A port of any other process is refused, also when it takes the
 * place of the right one while the connection is made.
 */
#include "sockets.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAX_PIDS 4096
#define MAX_DESCRIPTORS 100000 /* of one process */
#define MAX_FOUND 64
#define CONNECT_MS 5000

/* A socket that listens on the port, in the namespace that is examined. */
struct listener { uint32_t inode, ip[4]; int kind; bool is_ours; };

static struct { uint32_t port; struct numbers inodes; struct listener found[MAX_FOUND]; size_t count; } look;

/* ---- which sockets ---- */

static void see(const struct socket_seen *seen, int kind, void *with) {
  (void)with;
  if (!seen->is_listening || seen->address != look.port || look.count == MAX_FOUND) return;
  struct listener *listener = &look.found[look.count++];
  *listener = (struct listener){.inode = seen->inode, .kind = kind, .is_ours = numbers_have(&look.inodes, seen->inode)};
  memcpy(listener->ip, socket_ip(), sizeof listener->ip);
}

static bool find_listeners(int netlink) {
  look.count = 0;
  return space_look(netlink, TCP4 | TCP6, see, NULL);
}

static size_t ip_words(const struct listener *listener) { return listener->kind == TCP4 ? 1 : 4; }

static bool is_wildcard(const struct listener *listener) {
  for (size_t i = 0; i < ip_words(listener); i++)
    if (listener->ip[i] != 0) return false;
  return true;
}

static bool is_same(const struct listener *a, const struct listener *b) {
  return a->kind == b->kind && memcmp(a->ip, b->ip, ip_words(a) * sizeof *a->ip) == 0;
}

/* Where to connect: a socket that listens everywhere listens on the loopback address. */
static struct listener target_of(const struct listener *listener) {
  struct listener target = *listener;
  if (!is_wildcard(listener)) return target;
  if (listener->kind == TCP4) target.ip[0] = htonl(INADDR_LOOPBACK);
  else memcpy(target.ip, &in6addr_loopback, sizeof target.ip);
  return target;
}

/* Another process could get the connection: it listens there, or everywhere. */
static bool is_contested(const struct listener *target) {
  for (size_t i = 0; i < look.count; i++) {
    const struct listener *other = &look.found[i];
    if (!other->is_ours && (is_same(other, target) || is_wildcard(other))) return true;
  }
  return false;
}

static bool still_listens(int netlink, const struct listener *target, uint32_t inode) {
  if (!find_listeners(netlink) || is_contested(target)) return false;
  for (size_t i = 0; i < look.count; i++)
    if (look.found[i].inode == inode) return true;
  return false;
}

/* ---- the connection ---- */

static int open_connection(const struct listener *target) {
  struct sockaddr_in ip4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)look.port), .sin_addr.s_addr = target->ip[0]};
  struct sockaddr_in6 ip6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)look.port)};
  bool is_ip4 = target->kind == TCP4;
  memcpy(&ip6.sin6_addr, target->ip, sizeof ip6.sin6_addr);
  int connection = socket(is_ip4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), error = 0;
  if (connection < 0) return -1;
  const struct sockaddr *address = is_ip4 ? (const struct sockaddr *)&ip4 : (const struct sockaddr *)&ip6;
  if (connect(connection, address, is_ip4 ? sizeof ip4 : sizeof ip6) == 0) return connection;
  struct pollfd wait = {connection, POLLOUT, 0};
  socklen_t size = sizeof error;
  if (errno == EINPROGRESS && poll(&wait, 1, CONNECT_MS) == 1 && getsockopt(connection, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0)
    return connection;
  close(connection);
  return -1;
}

static _Noreturn void serve(int connection) {
  struct channel channel = {.to = connection, .from = dup(connection), .errors = -1, .link = -1, .guard = -1};
  channel_run(&channel);
}

/* Does not return once it is connected. Returns why not, or NULL if none of the sockets is of the task. */
static const char *try_space(int netlink) {
  struct listener found[MAX_FOUND];
  const char *why = NULL;
  if (!find_listeners(netlink)) return NULL;
  size_t count = look.count;
  memcpy(found, look.found, sizeof found);
  for (size_t i = 0; i < count; i++) {
    struct listener target = target_of(&found[i]);
    if (!found[i].is_ours) continue;
    find_listeners(netlink);
    why = "port_contested";
    if (is_contested(&target)) continue;
    why = "port_refused";
    int connection = open_connection(&target);
    if (connection < 0) continue;
    if (still_listens(netlink, &target, found[i].inode)) serve(connection);
    close(connection);
  }
  return why;
}

/* ---- namespaces ---- */

static bool join(pid_t pid, const char *kind, int flag) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/ns/%s", (int)pid, kind);
  int space = open(path, O_RDONLY | O_CLOEXEC);
  bool is_in = space >= 0 && setns(space, flag) == 0;
  if (space >= 0) close(space);
  return is_in;
}

/* A server that is not root has rights over the network of its containers in their user namespace only. */
static bool enter(pid_t pid) {
  if (space_of(pid) == space_of(getpid())) return true;
  return join(pid, "net", CLONE_NEWNET) || (join(pid, "user", CLONE_NEWUSER) && join(pid, "net", CLONE_NEWNET));
}

static size_t read_pids(const char *text, pid_t *pids) {
  size_t count = 0;
  for (char *end; count < MAX_PIDS && *text != 0; text = *end == ',' ? end + 1 : end) {
    pids[count++] = (pid_t)strtol(text, &end, 10);
    if (end == text || pids[count - 1] <= 0) exit(2);
  }
  return count;
}

int forward_port(const char *port, const char *list) {
  static pid_t pids[MAX_PIDS];
  static uint64_t spaces[MAX_PIDS];
  const char *why = NULL;
  size_t count = read_pids(list, pids);
  signal(SIGPIPE, SIG_IGN);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  look.port = (uint32_t)atoi(port);
  for (size_t i = 0; i < count; i++) {
    sockets_of(pids[i], &look.inodes, MAX_DESCRIPTORS);
    spaces[i] = space_of(pids[i]);
  }
  numbers_sort(&look.inodes);
  for (size_t i = 0; i < count; i++) {
    bool is_seen = spaces[i] == 0;
    for (size_t before = 0; before < i; before++) is_seen = is_seen || spaces[before] == spaces[i];
    if (is_seen || space_of(pids[i]) != spaces[i] || !enter(pids[i])) continue;
    int netlink = space_open(getpid());
    const char *why_not = netlink < 0 ? NULL : try_space(netlink);
    if (why_not != NULL) why = why_not;
  }
  channel_refuse("%s", why == NULL ? "port_closed" : why);
}
