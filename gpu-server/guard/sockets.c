/*
 * headroom-guard --sockets: tells a GPU server when a request waits for a task. One process per server, which
 * writes one command per line to its input; its end ends this process.
 *
 *   watch KEY PORTS PIDS  the task is stopped. Answers `watching KEY N`: N of its listening sockets count. Later
 *                         `wanted KEY`, once, when a request waits.
 *   forget KEY            the task runs again, or has ended.
 *   look KEY PORTS PIDS   the task runs. Answers `looked KEY 1` if a request waits now, else `looked KEY 0`.
 *
 * KEY is a number. PORTS: the TCP ports that count, separated by commas; `*`: all of them, and Unix sockets.
 * `full N`: in N accept queues of stopped tasks there is no room for another connection; said when it changes.
 *
 * What counts: sockets that listen, and connections that were accepted on them. A stopped process neither opens
 * nor accepts any, so its sockets are found once; after that a look costs two requests to the kernel.
 */
#include "sockets.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LOOK_MS 100
#define MAX_SHARE 125          /* a look takes at most this part of the time until the next one: 0.8%, all else 0.1% */
#define FRESH_MS 50            /* `look` commands within it share one look */
#define UNUSED_MS 10000        /* then a namespace is closed */
#define MAX_SPACES 2048
#define MAX_PORTS 64
#define MAX_DESCRIPTORS 100000 /* of one process */
#define MAX_LINE 262144

struct watch { unsigned long key; bool is_wanted; struct watch *next; };
/* A socket of a stopped task. */
struct counted { uint32_t inode; int kind; struct watch *watch; struct space *space; };
/* A network namespace. `seen`: its sockets at `seen_at`. */
struct space {
  uint64_t id;
  int netlink, kinds;
  int64_t used_at, seen_at;
  struct socket_seen *seen;
  int *seen_kinds;
  size_t count, room;
  struct space *next;
};
struct ports { bool are_all; size_t count; uint32_t list[MAX_PORTS]; };
/* One task while a command about it is obeyed. `listening`: addresses of its listening sockets that count. */
struct task { unsigned long key; struct ports ports; pid_t *pids; size_t pid_count; struct numbers inodes, listening; };

static struct watch *watches;
static struct counted *counted;
static size_t counted_count, counted_room, full, said_full;
static struct space *spaces;

static int64_t cpu_us(void) {
  struct timespec used;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return (int64_t)used.tv_sec * 1000000 + used.tv_nsec / 1000;
}

/* ---- namespaces ---- */

static void remember(const struct socket_seen *seen, int kind, void *with) {
  struct space *space = with;
  if (space->count == space->room) {
    space->room = space->room == 0 ? 256 : space->room * 2;
    space->seen = realloc(space->seen, space->room * sizeof *space->seen);
    space->seen_kinds = realloc(space->seen_kinds, space->room * sizeof *space->seen_kinds);
    if (space->seen == NULL || space->seen_kinds == NULL) abort();
  }
  space->seen_kinds[space->count] = kind;
  space->seen[space->count++] = *seen;
}

static void look_again(struct space *space) {
  space->count = 0;
  space_look(space->netlink, ALL_KINDS, remember, space);
  space->seen_at = now_boot();
}

static struct space *find_space(pid_t pid) {
  uint64_t id = space_of(pid);
  size_t count = 0;
  struct space *space = spaces;
  for (; space != NULL && space->id != id; space = space->next) count++;
  if (space == NULL && id != 0 && count < MAX_SPACES) {
    int netlink = space_open(pid);
    if (netlink < 0) return NULL;
    space = calloc(1, sizeof *space);
    if (space == NULL) abort();
    *space = (struct space){.id = id, .netlink = netlink, .seen_at = -FRESH_MS, .next = spaces};
    spaces = space;
  }
  if (space != NULL) space->used_at = now_boot();
  return space;
}

static void close_unused(void) {
  int64_t before = now_boot() - UNUSED_MS;
  for (struct space **at = &spaces; *at != NULL;) {
    struct space *space = *at;
    if (space->kinds != 0 || space->used_at > before) {
      at = &space->next;
      continue;
    }
    *at = space->next;
    close(space->netlink);
    free(space->seen);
    free(space->seen_kinds);
    free(space);
  }
}

/* ---- the sockets of a task ---- */

static bool does_count(const struct ports *ports, uint32_t address) {
  if (ports->are_all) return true;
  for (size_t i = 0; i < ports->count; i++)
    if (ports->list[i] == address) return true;
  return false;
}

/* Calls `act` for each socket of the task that counts, in one namespace: those that listen first. */
static void each_counted(struct task *task, struct space *space, void (*act)(struct task *, struct space *, size_t)) {
  for (size_t i = 0; i < space->count; i++) {
    const struct socket_seen *seen = &space->seen[i];
    if (!seen->is_listening || !numbers_have(&task->inodes, seen->inode) || !does_count(&task->ports, seen->address)) continue;
    numbers_add(&task->listening, seen->address);
    act(task, space, i);
  }
  numbers_sort(&task->listening);
  for (size_t i = 0; i < space->count; i++) {
    const struct socket_seen *seen = &space->seen[i];
    if (seen->is_listening || seen->address == 0 || !numbers_have(&task->listening, seen->address)) continue;
    if (numbers_have(&task->inodes, seen->inode)) act(task, space, i);
  }
}

static void find_sockets(struct task *task) {
  for (size_t i = 0; i < task->pid_count; i++) sockets_of(task->pids[i], &task->inodes, MAX_DESCRIPTORS);
  numbers_sort(&task->inodes);
}

/* The namespace of this process of the task, if none of those before it has the same. */
static struct space *next_space(const struct task *task, size_t at) {
  struct space *space = find_space(task->pids[at]);
  for (size_t i = 0; space != NULL && i < at; i++)
    if (space_of(task->pids[i]) == space->id) return NULL;
  return space;
}

/* ---- stopped tasks ---- */

static int by_inode(const void *a, const void *b) {
  uint32_t x = ((const struct counted *)a)->inode, y = ((const struct counted *)b)->inode;
  return x < y ? -1 : x > y;
}

static void count_kinds(void) {
  for (struct space *space = spaces; space != NULL; space = space->next) space->kinds = 0;
  for (size_t i = 0; i < counted_count; i++) counted[i].space->kinds |= counted[i].kind;
}

static size_t found_listening;

static void count_socket(struct task *task, struct space *space, size_t at) {
  (void)task;
  if (space->seen[at].is_listening) found_listening++;
  if (counted_count == counted_room) {
    counted_room = counted_room == 0 ? 256 : counted_room * 2;
    counted = realloc(counted, counted_room * sizeof *counted);
    if (counted == NULL) abort();
  }
  counted[counted_count++] = (struct counted){space->seen[at].inode, space->seen_kinds[at], watches, space};
}

static void forget(unsigned long key) {
  size_t kept = 0;
  for (size_t i = 0; i < counted_count; i++)
    if (counted[i].watch->key != key) counted[kept++] = counted[i];
  counted_count = kept;
  for (struct watch **at = &watches; *at != NULL;) {
    struct watch *watch = *at;
    if (watch->key != key) at = &watch->next;
    else {
      *at = watch->next;
      free(watch);
    }
  }
  count_kinds();
}

static void begin_watch(struct task *task) {
  struct watch *watch = malloc(sizeof *watch);
  if (watch == NULL) abort();
  forget(task->key);
  *watch = (struct watch){task->key, false, watches};
  watches = watch;
  found_listening = 0;
  find_sockets(task);
  for (size_t i = 0; i < task->pid_count; i++) {
    struct space *space = next_space(task, i);
    if (space == NULL) continue;
    look_again(space);
    each_counted(task, space, count_socket);
  }
  if (counted_count > 0) qsort(counted, counted_count, sizeof *counted, by_inode);
  count_kinds();
  printf("watching %lu %zu\n", task->key, found_listening);
}

static void see_counted(const struct socket_seen *seen, int kind, void *with) {
  struct counted looked_for = {.inode = seen->inode};
  (void)kind;
  (void)with;
  if (seen->waiting == 0 || seen->inode == 0) return;
  const struct counted *found = bsearch(&looked_for, counted, counted_count, sizeof *counted, by_inode);
  if (found == NULL) return;
  if (seen->is_listening && seen->waiting > seen->room) full++;
  if (found->watch->is_wanted) return;
  found->watch->is_wanted = true;
  printf("wanted %lu\n", found->watch->key);
}

static void look_at_stopped(void) {
  full = 0;
  for (struct space *space = spaces; space != NULL; space = space->next)
    if (space->kinds != 0) space_look(space->netlink, space->kinds, see_counted, NULL);
  if (full != said_full) printf("full %zu\n", full);
  said_full = full;
}

/* ---- running tasks ---- */

/* Whether a request waits at an address that counts, of whichever process: only then the processes of the task
 * are examined. */
static bool might_wait(const struct space *space, const struct ports *ports) {
  for (size_t i = 0; i < space->count; i++)
    if (space->seen[i].waiting > 0 && space->seen[i].address != 0 && does_count(ports, space->seen[i].address)) return true;
  return false;
}

static bool does_wait;

static void note_waiting(struct task *task, struct space *space, size_t at) {
  (void)task;
  if (space->seen[at].waiting > 0) does_wait = true;
}

static void look_at_running(struct task *task) {
  does_wait = false;
  for (size_t i = 0; i < task->pid_count && !does_wait; i++) {
    struct space *space = next_space(task, i);
    if (space == NULL) continue;
    if (now_boot() - space->seen_at >= FRESH_MS) look_again(space);
    if (!might_wait(space, &task->ports)) continue;
    if (task->inodes.count == 0) find_sockets(task);
    each_counted(task, space, note_waiting);
  }
  printf("looked %lu %d\n", task->key, does_wait);
}

/* ---- commands ---- */

static bool read_ports(const char *text, struct ports *ports) {
  if (strcmp(text, "*") == 0) return ports->are_all = true;
  for (char *end; *text != 0; text = *end == ',' ? end + 1 : end) {
    unsigned long port = strtoul(text, &end, 10);
    if (end == text || port == 0 || port > 65535 || ports->count == MAX_PORTS) return false;
    ports->list[ports->count++] = (uint32_t)port;
  }
  return true;
}

static bool read_pids(char *text, struct task *task) {
  task->pids = calloc(strlen(text) / 2 + 1, sizeof *task->pids);
  if (task->pids == NULL) abort();
  for (char *word; (word = strsep(&text, ",")) != NULL;) {
    long pid = strtol(word, NULL, 10);
    if (pid > 0) task->pids[task->pid_count++] = (pid_t)pid;
  }
  return task->pid_count > 0;
}

static void obey(char *line) {
  struct task task = {0};
  const char *verb = strsep(&line, " "), *key = strsep(&line, " ");
  if (key == NULL) return;
  task.key = strtoul(key, NULL, 10);
  const char *ports = strsep(&line, " ");
  bool is_watch = strcmp(verb, "watch") == 0;
  if (strcmp(verb, "forget") == 0) forget(task.key);
  else if (ports != NULL && line != NULL && read_ports(ports, &task.ports) && read_pids(line, &task)) {
    if (is_watch) begin_watch(&task);
    else look_at_running(&task);
  } else printf("%s %lu 0\n", is_watch ? "watching" : "looked", task.key);
  free(task.pids);
  free(task.inodes.list);
  free(task.listening.list);
}

/* Obeys each whole line; returns false at the end of the input. */
static bool hear_server(void) {
  static char text[MAX_LINE];
  static size_t size;
  ssize_t n = read(0, text + size, sizeof text - size);
  if (n < 0) return errno == EINTR;
  if (n == 0) return false;
  size += (size_t)n;
  char *from = text, *end;
  while ((end = memchr(from, '\n', size - (size_t)(from - text))) != NULL) {
    *end = 0;
    obey(from);
    from = end + 1;
  }
  size -= (size_t)(from - text);
  memmove(text, from, size);
  return size < sizeof text;
}

int watch_sockets(void) {
  static const int ignored[] = {SIGHUP, SIGINT, SIGQUIT}; /* from a terminal: its server ends it */
  for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++) signal(ignored[i], SIG_IGN);
  int64_t next = 0;
  for (;;) {
    struct pollfd input = {0, POLLIN, 0};
    int64_t left = next - now_boot();
    int wait = watches == NULL ? (spaces == NULL ? -1 : UNUSED_MS) : left > 0 ? (int)left : 0;
    if (poll(&input, 1, wait) > 0 && !hear_server()) return 0;
    if (watches != NULL && now_boot() >= next) {
      int64_t before = cpu_us();
      look_at_stopped();
      int64_t pause = (cpu_us() - before) * MAX_SHARE / 1000;
      next = now_boot() + (pause > LOOK_MS ? pause : LOOK_MS);
    } else if (watches == NULL && said_full != 0) look_at_stopped();
    close_unused();
    if (fflush(stdout) != 0) return 1;
  }
}
