/* Finds the processes of a task through /proc, stops and signals them. */
#include "guard.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define STOP_LIMIT_MS 2000
#define KICK_EVERY 8 /* rounds */
#define KICKS 10
#define PATH_BYTES 4400
#define CHUNK_BYTES 4096

static ssize_t read_small(const char *path, char *text, size_t size) {
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return -1;
  ssize_t n = read(file, text, size - 1);
  close(file);
  if (n >= 0) text[n] = 0;
  return n;
}

/* Returns the fields after the name in a stat file; the name may contain anything, including ')'. */
static const char *after_name(const char *path, char *text, size_t size) {
  if (read_small(path, text, size) <= 0) return NULL;
  const char *end = strrchr(text, ')');
  return end == NULL || end[1] == 0 ? NULL : end + 2;
}

uint64_t start_time(pid_t pid) {
  char path[64], text[1024];
  snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
  const char *at = after_name(path, text, sizeof text);
  for (int field = 3; at != NULL && field < 22; field++) {
    at = strchr(at, ' ');
    if (at != NULL) at++;
  }
  return at == NULL ? 0 : strtoull(at, NULL, 10);
}

bool is_process_dead(pid_t pid) {
  char path[64], text[1024];
  snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
  const char *state = after_name(path, text, sizeof text);
  return state == NULL || *state == 'Z' || *state == 'X';
}

static void add(struct processes *found, pid_t pid) {
  for (size_t i = 0; i < found->count; i++)
    if (found->list[i].pid == pid) return;
  if (found->count == found->room) {
    size_t room = found->room == 0 ? 64 : found->room * 2;
    struct process *list = realloc(found->list, room * sizeof *list);
    if (list == NULL) abort(); /* the death of the guard ends the task */
    found->list = list;
    found->room = room;
  }
  found->list[found->count++] = (struct process){pid, true, true, false};
}

/* Adds every pid of a file that lists them; the file may have any length. */
static void add_listed(struct processes *found, const char *path) {
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  char text[CHUNK_BYTES];
  long pid = 0;
  for (ssize_t n; (n = read(file, text, sizeof text)) > 0;) {
    for (ssize_t i = 0; i < n; i++) {
      if (text[i] >= '0' && text[i] <= '9') pid = pid * 10 + (text[i] - '0');
      else if (pid > 0) {
        add(found, (pid_t)pid);
        pid = 0;
      }
    }
  }
  if (pid > 0) add(found, (pid_t)pid);
  close(file);
}

/* Adds the children of every thread of a process, and records whether the process is stopped. */
static void look_at(struct processes *found, pid_t pid, struct process *about) {
  char path[320], text[1024];
  snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
  DIR *threads = opendir(path);
  if (threads == NULL) return;
  for (struct dirent *entry; (entry = readdir(threads)) != NULL;) {
    if (entry->d_name[0] == '.') continue;
    snprintf(path, sizeof path, "/proc/%d/task/%s/children", (int)pid, entry->d_name);
    add_listed(found, path);
    if (about == NULL) continue;
    snprintf(path, sizeof path, "/proc/%d/task/%s/stat", (int)pid, entry->d_name);
    const char *state = after_name(path, text, sizeof text);
    if (state == NULL || *state == 'Z' || *state == 'X') continue;
    about->is_dead = false;
    if (*state != 'T' && *state != 't') about->is_still = false;
    if (*state == 'D') about->is_waiting = true;
  }
  closedir(threads);
}

bool can_list_children(void) { return access("/proc/thread-self/children", R_OK) == 0; }

static void add_members(struct processes *found, const char *cgroup) {
  char path[PATH_BYTES];
  if (*cgroup == 0) return;
  snprintf(path, sizeof path, "%s/cgroup.procs", cgroup);
  add_listed(found, path);
}

/* An engine may run a container in a cgroup that it shares with other processes. */
static void add_contained(struct processes *found, const struct scope *scope) {
  struct processes members = {0};
  if (scope->pid_namespace == 0) return;
  add_members(&members, scope->container_cgroup);
  for (size_t i = 0; i < members.count; i++)
    if (pid_namespace_of(members.list[i].pid) == scope->pid_namespace) add(found, members.list[i].pid);
  free(members.list);
}

void processes_find(struct processes *found, const struct scope *scope) {
  found->count = 0;
  look_at(found, scope->root, NULL);
  add_members(found, scope->cgroup);
  add_contained(found, scope);
  for (size_t i = 0; i < found->count; i++) {
    struct process about = found->list[i];
    look_at(found, about.pid, &about);
    found->list[i] = about;
  }
  size_t kept = 0;
  for (size_t i = 0; i < found->count; i++)
    if (found->list[i].pid != scope->spared && found->list[i].pid != scope->root) found->list[kept++] = found->list[i];
  found->count = kept;
}

void cgroup_write(const char *cgroup, const char *name, const char *text) {
  char path[PATH_BYTES];
  if (*cgroup == 0) return;
  snprintf(path, sizeof path, "%s/%s", cgroup, name);
  int file = open(path, O_WRONLY | O_CLOEXEC);
  if (file < 0) return;
  ssize_t n = write(file, text, strlen(text));
  (void)n; /* an optimisation: everything works without it */
  close(file);
}

static bool are_same(const struct processes *a, const struct processes *b) {
  if (a->count != b->count) return false;
  for (size_t i = 0; i < a->count; i++)
    if (a->list[i].pid != b->list[i].pid) return false;
  return true;
}

/*
 * After vfork a process waits, unable to handle SIGSTOP, until its child executes a program (posix_spawn,
 * Python, Node). A child that was stopped before that continues for a moment, so that both can be stopped.
 */
static void let_vfork_pass(const struct processes *found) {
  struct processes children = {0};
  for (size_t i = 0; i < found->count; i++)
    if (found->list[i].is_waiting) look_at(&children, found->list[i].pid, NULL);
  for (size_t i = 0; i < children.count; i++) kill(children.list[i].pid, SIGCONT);
  free(children.list);
}

/* One round; returns the pid of a process that still runs after SIGSTOP, or 0. */
static pid_t stop_once(struct processes *found, const struct scope *scope) {
  pid_t runs = 0;
  processes_find(found, scope);
  for (size_t i = 0; i < found->count; i++) {
    if (found->list[i].is_still) continue;
    if (kill(found->list[i].pid, SIGSTOP) == 0 || errno == EPERM) runs = found->list[i].pid;
  }
  return runs;
}

pid_t processes_stop(const struct scope *scope) {
  struct processes seen = {0}, before = {0};
  int64_t limit = now_boot() + STOP_LIMIT_MS;
  pid_t runs = -1;
  cgroup_write(scope->cgroup, "cgroup.freeze", "1"); /* prevents forks while processes are signalled one by one */
  stop_once(&seen, scope);
  cgroup_write(scope->cgroup, "cgroup.freeze", "0");
  /* Two equal rounds with all processes stopped: no process was left that could have started another. */
  long pause = 100000;
  for (int look = 1; runs != 0 && now_boot() < limit; look++, pause = pause < 5000000 ? pause * 2 : pause) {
    struct processes swap = before;
    before = seen;
    seen = swap;
    runs = stop_once(&seen, scope);
    if (runs == 0 && !are_same(&seen, &before)) runs = -1;
    if (runs > 0 && look % KICK_EVERY == 0 && look <= KICK_EVERY * KICKS) let_vfork_pass(&seen);
    if (runs != 0) nanosleep(&(struct timespec){0, pause}, NULL);
  }
  free(seen.list);
  free(before.list);
  return runs;
}

void processes_signal(const struct scope *scope, int signal) {
  struct processes found = {0};
  const char *cgroup = scope->cgroup;
  if (signal == SIGKILL) cgroup_write(cgroup, "cgroup.kill", "1");
  /* Prevents forks while processes are signalled one by one: a process that starts later would miss the
   * signal. */
  if (signal == SIGTERM) cgroup_write(cgroup, "cgroup.freeze", "1");
  processes_find(&found, scope);
  for (size_t i = 0; i < found.count; i++)
    if (!found.list[i].is_dead) kill(found.list[i].pid, signal);
  if (signal == SIGTERM) cgroup_write(cgroup, "cgroup.freeze", "0");
  free(found.list);
}

/* ---- of a container ---- */

uint64_t pid_namespace_of(pid_t pid) {
  char path[64];
  struct stat about;
  snprintf(path, sizeof path, "/proc/%d/ns/pid", (int)pid);
  return stat(path, &about) == 0 ? about.st_ino : 0;
}

/* True on a kernel before 4.1, which does not say. */
bool is_init_of_namespace(pid_t pid) {
  char path[64], text[CHUNK_BYTES];
  snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
  if (read_small(path, text, sizeof text) <= 0) return false;
  char *line = strstr(text, "\nNSpid:");
  if (line == NULL) return true;
  line[1 + strcspn(line + 1, "\n")] = 0;
  const char *last = strrchr(line, '\t');
  return last != NULL && strcmp(last, "\t1") == 0;
}

static bool has_members(const char *folder) {
  char path[PATH_BYTES];
  snprintf(path, sizeof path, "%s/cgroup.procs", folder);
  return access(path, R_OK) == 0;
}

/* `line`: `0::/path` of cgroup v2, or `4:pids:/path` of version 1. */
static bool try_cgroup(const char *line, char *path, size_t size) {
  const char *kind = strchr(line, ':'), *at = kind == NULL ? NULL : strchr(kind + 1, ':');
  if (at == NULL || strstr(at, "/..") != NULL || strcmp(at + 1, "/") == 0) return false;
  bool is_v2 = strncmp(line, "0::", 3) == 0;
  if (!is_v2 && strncmp(kind, ":pids:", 6) != 0) return false;
  const char *const roots[] = {is_v2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/pids", "/sys/fs/cgroup/unified"};
  for (size_t i = 0; i < (is_v2 ? 2 : 1); i++) {
    if (snprintf(path, size, "%s%s", roots[i], at + 1) < (int)size && has_members(path)) return true;
  }
  return false;
}

void find_container_cgroup(pid_t pid, char *path, size_t size) {
  char name[64], text[CHUNK_BYTES], *rest = text;
  snprintf(name, sizeof name, "/proc/%d/cgroup", (int)pid);
  if (read_small(name, text, sizeof text) > 0)
    for (char *line; (line = strsep(&rest, "\n")) != NULL;)
      if (try_cgroup(line, path, size)) return;
  *path = 0;
}
