/* Limits that the server has set in cgroups of this task, and what their limit of memory has done. */
#include "guard.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATH_BYTES 4400
#define TEXT_BYTES 4096

static int counts = -1;

bool limits_join(char **folders, pid_t pid) {
  char path[PATH_BYTES], text[16];
  int size = snprintf(text, sizeof text, "%d", (int)pid);
  for (char **folder = folders; *folder != NULL; folder++) {
    snprintf(path, sizeof path, "%s/cgroup.procs", *folder);
    int file = open(path, O_WRONLY | O_CLOEXEC);
    bool is_in = file >= 0 && write(file, text, (size_t)size) == size;
    if (file >= 0) close(file);
    if (!is_in) return false;
  }
  return true;
}

/* `line`: `0::/path` of cgroup v2, or `4:memory:/path` of version 1. The path is as this process sees it. */
static bool try_counts(const char *line) {
  char path[PATH_BYTES];
  const char *kind = strchr(line, ':'), *at = kind == NULL ? NULL : strchr(kind + 1, ':');
  if (at == NULL || strstr(at, "/..") != NULL) return false;
  bool is_v2 = strncmp(line, "0::", 3) == 0;
  if (!is_v2 && strncmp(kind, ":memory:", 8) != 0) return false;
  snprintf(path, sizeof path, "/sys/fs/cgroup%s%s/%s", is_v2 ? "" : "/memory", at + 1, is_v2 ? "memory.events" : "memory.oom_control");
  counts = open(path, O_RDONLY | O_CLOEXEC);
  return counts >= 0;
}

void memory_watch(pid_t pid) {
  char path[64], text[TEXT_BYTES], *rest = text;
  snprintf(path, sizeof path, "/proc/%d/cgroup", (int)pid);
  int file = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t n = file < 0 ? 0 : read(file, text, sizeof text - 1);
  if (file >= 0) close(file);
  text[n < 0 ? 0 : n] = 0;
  for (char *line; counts < 0 && (line = strsep(&rest, "\n")) != NULL;) try_counts(line);
}

bool memory_has_killed(void) {
  char text[TEXT_BYTES];
  ssize_t n = counts < 0 ? 0 : pread(counts, text, sizeof text - 1, 0);
  text[n < 0 ? 0 : n] = 0;
  const char *at = strstr(text, "oom_kill ");
  return at != NULL && strtoull(at + strlen("oom_kill "), NULL, 10) > 0;
}
