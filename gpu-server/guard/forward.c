/*
 * headroom-guard --forward PORT PIDS: connects a client (channel.c) to a TCP port on which one of these processes
 * listens, in the network namespace of that process. A port of any other process is refused, also when it takes the
 * place of the right one while the connection is made.
 */
#include "sockets.h"

#include <errno.h>
#include <fcntl.h>
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
#define CONNECT_MS 5000

static struct { uint32_t port; struct numbers inodes; } task;

/* ---- the connection ---- */

static int open_connection(const struct listener *target) {
  int connection = listener_connect(task.port, target), error = 0;
  if (connection < 0) return -1;
  struct pollfd wait = {connection, POLLOUT, 0};
  socklen_t size = sizeof error;
  if (poll(&wait, 1, CONNECT_MS) == 1 && getsockopt(connection, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0)
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
  struct listeners found;
  const char *why = NULL;
  if (!listeners_find(&found, netlink, task.port, &task.inodes)) return NULL;
  for (size_t i = 0; i < found.count; i++) {
    struct listener target = listener_target(&found.list[i]);
    if (!target.is_ours) continue;
    why = "port_contested";
    if (listeners_contest(&found, &target)) continue;
    why = "port_refused";
    int connection = open_connection(&target);
    if (connection < 0) continue;
    struct listeners now;
    if (listeners_find(&now, netlink, task.port, &task.inodes) && listeners_have(&now, &target)) serve(connection);
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
  task.port = (uint32_t)atoi(port);
  for (size_t i = 0; i < count; i++) {
    sockets_of(pids[i], &task.inodes, MAX_DESCRIPTORS);
    spaces[i] = space_of(pids[i]);
  }
  numbers_sort(&task.inodes);
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
