/* The control socket of a guard: its clients, their commands and the answers. */
#include "state.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- sending ---- */

static void drop_client(int i) {
  close(guard.waits[ON_CLIENT + i].fd);
  guard.waits[ON_CLIENT + i].fd = -1;
}

/* A client that does not read is dropped; the guard never waits for it. */
static void say(int i, const char *text) {
  size_t size = strlen(text);
  if (send(guard.waits[ON_CLIENT + i].fd, text, size, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)size) drop_client(i);
}

void say_to_all(const char *text) {
  for (int i = 0; i < CLIENTS; i++)
    if (guard.waits[ON_CLIENT + i].fd >= 0) say(i, text);
}

void say_status(const char *prefix, int i) {
  char text[REPLY_BYTES];
  snprintf(text, sizeof text, "%s state=%s lease=%d leased=%d stopping=%d pid=%d isolated=%d dropped=%" PRIu64 "\n", prefix,
    guard.is_suspended ? "suspended" : "running", guard.by_lease, guard.is_leased, guard.is_stopping,
    (int)guard.keeper.command, guard.keeper.is_isolated,
    output_dropped());
  if (i < 0) say_to_all(text);
  else say(i, text);
}

/* ---- receiving: one command a line ---- */

static void list_processes(int i) {
  struct processes found = {0};
  struct scope scope = task_scope();
  processes_find(&found, &scope);
  size_t room = found.count * 12 + 8, size = 2;
  char *text = malloc(room);
  if (text == NULL) abort();
  strcpy(text, "ok");
  for (size_t n = 0; n < found.count; n++)
    if (!found.list[n].is_dead) size += (size_t)snprintf(text + size, room - size, " %d", (int)found.list[n].pid);
  strcpy(text + size, "\n");
  say(i, text);
  free(text);
  free(found.list);
}

static void on_suspend(int i) {
  char text[REPLY_BYTES];
  pid_t runs = suspend_task();
  if (runs == 0) return say(i, "ok\n");
  if (runs > 0) snprintf(text, sizeof text, "error process %d does not stop\n", (int)runs);
  else snprintf(text, sizeof text, "error new processes keep coming\n");
  say(i, text);
}

static void on_resume(int i) {
  char text[REPLY_BYTES];
  const char *why = why_not_resume();
  if (why != NULL) {
    snprintf(text, sizeof text, "error %s\n", why);
    return say(i, text);
  }
  guard.is_suspended = guard.by_lease = false;
  guard.has_run = true;
  struct scope scope = task_scope();
  processes_signal(&scope, SIGCONT);
  say(i, "ok\n");
}

static void obey(int i, const char *line) {
  if (strcmp(line, "status") == 0) return say_status("ok", i);
  if (strcmp(line, "pids") == 0) return list_processes(i);
  if (strcmp(line, "suspend") == 0) return on_suspend(i);
  if (strcmp(line, "resume") == 0) return on_resume(i);
  if (strcmp(line, "leased 0") == 0 || strcmp(line, "leased 1") == 0) {
    guard.is_leased = line[7] == '1';
    check_lease();
    return say(i, "ok\n");
  }
  if (strcmp(line, "kill") == 0) {
    end_task();
    return say(i, "ok\n");
  }
  if (strncmp(line, "stop ", 5) == 0) {
    stop_task(strtoll(line + 5, NULL, 10));
    return say(i, "ok\n");
  }
  say(i, "error unknown command\n");
}

void hear(int i) {
  char *line = guard.clients[i].line, *end;
  size_t *size = &guard.clients[i].size;
  ssize_t n = recv(guard.waits[ON_CLIENT + i].fd, line + *size, LINE_BYTES - *size, MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n <= 0) return drop_client(i);
  *size += (size_t)n;
  while (guard.waits[ON_CLIENT + i].fd >= 0 && (end = memchr(line, '\n', *size)) != NULL) {
    size_t used = (size_t)(end - line) + 1;
    *end = 0;
    obey(i, line);
    *size -= used;
    memmove(line, line + used, *size);
  }
  if (*size == LINE_BYTES) drop_client(i);
}

void accept_client(void) {
  int client = accept4(guard.waits[ON_LISTEN].fd, NULL, NULL, SOCK_CLOEXEC);
  for (int i = 0; client >= 0 && i < CLIENTS; i++) {
    if (guard.waits[ON_CLIENT + i].fd >= 0) continue;
    guard.waits[ON_CLIENT + i].fd = client;
    guard.clients[i].size = 0;
    return;
  }
  if (client >= 0) close(client);
}
