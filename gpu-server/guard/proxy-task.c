/* Which sockets belong to the task, for its proxy: those that a descendant of its guard, or of the init of its
 * container, has open. It is asked before and after each connection. Who held the listening sockets is remembered, but
 * whether that process still does is looked up each time. */
#include "proxy.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MAX_DESCRIPTORS 100000 /* of one process */
#define RECORD_BYTES 8192

struct key { pid_t pid; uint64_t start; };
/* A socket that a process of the task holds as this descriptor. */
struct holder { uint32_t inode; int descriptor; struct key process; uint64_t space; };
struct holders { struct holder *list; size_t count, room; };

static struct { struct key guard, keeper; } task;
/* Who held the listening sockets that were found last. */
static struct holder known[MAX_LISTENERS];
static size_t known_count;
/* For the namespace of this process. */
static int own_netlink = -1;

/* ---- who is the task ---- */

static bool is_alive(const struct key *process) { return process->start != 0 && start_time(process->pid) == process->start; }

static bool read_key(const char *text, const char *name, struct key *process) {
  char before[32];
  snprintf(before, sizeof before, "\n%s ", name);
  const char *line = strstr(text, before);
  unsigned long long start;
  if (line == NULL || sscanf(line + strlen(before), "%d %llu", &process->pid, &start) != 2 || process->pid <= 1) return false;
  process->start = start;
  return true;
}

int task_find(void) {
  char text[RECORD_BYTES];
  int file = open("started", O_RDONLY | O_CLOEXEC);
  ssize_t size = file < 0 ? -1 : read(file, text, sizeof text - 1);
  if (file >= 0) close(file);
  if (size <= 0) return -1;
  text[size] = 0;
  if (!read_key(text, "guard", &task.guard) || !read_key(text, "keeper", &task.keeper)) return -1;
  int guard = (int)syscall(SYS_pidfd_open, task.guard.pid, 0);
  if (guard >= 0 && is_alive(&task.guard)) return guard;
  if (guard >= 0) close(guard);
  return -1;
}

/* ---- which sockets it has ---- */

static struct holder about;

static void add_holder(uint32_t inode, int descriptor, void *with) {
  struct holders *found = with;
  if (found->count == found->room) {
    found->room = found->room == 0 ? 64 : found->room * 2;
    found->list = realloc(found->list, found->room * sizeof *found->list);
    if (found->list == NULL) abort();
  }
  about.inode = inode;
  about.descriptor = descriptor;
  found->list[found->count++] = about;
}

static void add_sockets_of(pid_t pid, struct holders *found) {
  size_t before = found->count;
  about = (struct holder){.process = {pid, start_time(pid)}, .space = space_of(pid)};
  if (about.process.start == 0 || about.space == 0) return;
  each_socket_of(pid, MAX_DESCRIPTORS, add_holder, found);
  if (!is_alive(&about.process)) found->count = before;
}

/* The descendants of the guard, and of the init of a container, which is not one of them. */
static void find_sockets(struct holders *found) {
  const struct key *const roots[] = {&task.guard, &task.keeper};
  struct processes processes = {0};
  for (size_t i = 0; i < 2; i++) {
    if (!is_alive(roots[i])) continue;
    processes_find(&processes, &(struct scope){.root = roots[i]->pid, .spared = task.keeper.pid, .cgroup = "", .container_cgroup = ""});
    for (size_t p = 0; p < processes.count; p++) add_sockets_of(processes.list[p].pid, found);
  }
  free(processes.list);
}

static bool still_holds(const struct holder *holder) {
  char path[64], target[64], wanted[64];
  snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)holder->process.pid, holder->descriptor);
  snprintf(wanted, sizeof wanted, "socket:[%u]", holder->inode);
  ssize_t size = readlink(path, target, sizeof target - 1);
  if (size <= 0) return false;
  target[size] = 0;
  return strcmp(target, wanted) == 0 && space_of(holder->process.pid) == holder->space && is_alive(&holder->process);
}

/* ---- where it listens ---- */

static int netlink_in(const struct holder *holder) {
  if (holder->space != space_of(getpid())) return space_open(holder->process.pid);
  if (own_netlink < 0) own_netlink = space_open(getpid());
  return own_netlink;
}

static void leave(int netlink) {
  if (netlink >= 0 && netlink != own_netlink) close(netlink);
}

struct look { struct listeners found; struct numbers ours; int netlink; };

/* The listeners in the namespace of this holder; ours are those that one of the holders has. */
static bool look_in(struct look *look, const struct holder *where, uint32_t port, const struct holder *holders, size_t count) {
  look->ours = (struct numbers){0};
  for (size_t i = 0; i < count; i++)
    if (holders[i].space == where->space) numbers_add(&look->ours, holders[i].inode);
  numbers_sort(&look->ours);
  look->netlink = netlink_in(where);
  return look->netlink >= 0 && listeners_find(&look->found, look->netlink, port, &look->ours);
}

static void end_look(struct look *look) {
  leave(look->netlink);
  free(look->ours.list);
}

static bool has_foreign(const struct listeners *found) {
  for (size_t i = 0; i < found->count; i++)
    if (!found->list[i].is_ours) return true;
  return false;
}

struct call { uint32_t port; const struct listener *target; };

static int connect_there(void *with) {
  const struct call *call = with;
  return listener_connect(call->port, call->target);
}

static bool is_known(uint32_t inode) {
  for (size_t i = 0; i < known_count; i++)
    if (known[i].inode == inode) return true;
  return false;
}

/* Remembers who holds the listeners of the task that were found. */
static void remember(const struct listeners *found, const struct holder *holders, size_t count) {
  if (known_count + found->count > MAX_LISTENERS) known_count = 0;
  for (size_t i = 0; i < count; i++) {
    for (size_t at = 0; at < found->count; at++) {
      if (found->list[at].inode != holders[i].inode || is_known(holders[i].inode)) continue;
      known[known_count++] = holders[i];
    }
  }
}

static void forget_gone(void) {
  size_t kept = 0;
  for (size_t i = 0; i < known_count; i++)
    if (still_holds(&known[i])) known[kept++] = known[i];
  known_count = kept;
}

static int try_listeners(struct look *look, const struct holder *where, uint32_t port, struct listener *target) {
  for (size_t i = 0; i < look->found.count; i++) {
    *target = listener_target(&look->found.list[i]);
    if (!target->is_ours || listeners_contest(&look->found, target)) continue;
    struct call call = {port, target};
    int connection = space_do(where->process.pid, connect_there, &call);
    if (connection >= 0) return connection;
  }
  return -1;
}

/* Tries each namespace in which one of the holders is. `is_whole`: they are all sockets of the task; otherwise a listener
 * that none of them holds may still be its own, and nothing is tried. */
static int try_holders(const struct holder *holders, size_t count, bool is_whole, uint32_t port, struct listener *target) {
  int connection = -1;
  for (size_t i = 0; i < count && connection < 0; i++) {
    bool is_seen = false;
    for (size_t before = 0; before < i; before++) is_seen = is_seen || holders[before].space == holders[i].space;
    if (is_seen) continue;
    struct look look;
    if (look_in(&look, &holders[i], port, holders, count) && (is_whole || !has_foreign(&look.found))) {
      if (is_whole) remember(&look.found, holders, count);
      connection = try_listeners(&look, &holders[i], port, target);
    }
    end_look(&look);
  }
  return connection;
}

int task_connect(uint32_t port, struct listener *target) {
  forget_gone();
  int connection = try_holders(known, known_count, false, port, target);
  if (connection >= 0) return connection;
  struct holders all = {0};
  find_sockets(&all);
  connection = try_holders(all.list, all.count, true, port, target);
  free(all.list);
  return connection;
}

bool task_connected(uint32_t port, const struct listener *target) {
  forget_gone();
  for (size_t i = 0; i < known_count; i++) {
    if (known[i].inode != target->inode) continue;
    struct look look;
    bool is_right = look_in(&look, &known[i], port, known, known_count) && listeners_have(&look.found, target);
    end_look(&look);
    return is_right;
  }
  return false;
}
