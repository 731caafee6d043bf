/* The control socket of a guard: its clients, their commands and the answers. */
#include "state.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- sending ---- */

/* The command that it added ends with it. */
static void drop_client(int i) {
  close(guard.waits[ON_CLIENT + i].fd);
  guard.waits[ON_CLIENT + i].fd = -1;
  if (guard.clients[i].go >= 0) close(guard.clients[i].go);
  if (guard.clients[i].added != 0) tell_keeper(LINK_DROP, guard.clients[i].added);
  guard.clients[i].go = -1;
  guard.clients[i].added = 0;
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

/* ---- answers ---- */

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

/* ---- commands besides that of the task ---- */

static const char *why_not_add(void) {
  if (guard.is_killed || guard.is_stopping || guard.is_command_over) return "the task is ending";
  return guard.is_suspended ? "the task is stopped" : NULL;
}

/* The command waits until this guard knows of its process: a task that was suspended meanwhile gets none. */
static bool ask_keeper(int i, const struct passed *files) {
  int all[ADDED_FILES], go[2];
  struct link_message message = {LINK_ADD, ++guard.last_added};
  if (pipe2(go, O_CLOEXEC) != 0) return false;
  memcpy(all, files->list, files->count * sizeof *all);
  all[ADDED_GO] = go[0];
  bool is_asked = guard.waits[ON_LINK].fd >= 0 && pass_files(guard.waits[ON_LINK].fd, &message, sizeof message, all, ADDED_FILES);
  close(go[0]);
  guard.clients[i].added = message.status;
  guard.clients[i].go = go[1];
  return is_asked;
}

static void on_add(int i, const struct passed *files) {
  char text[REPLY_BYTES];
  const char *why = why_not_add();
  if (why == NULL && guard.clients[i].added == 0 && files->count == ADDED_GO && ask_keeper(i, files)) return;
  snprintf(text, sizeof text, "error %s\n", why == NULL ? "cannot start a process" : why);
  say(i, text);
}

void on_added(int number, bool is_made) {
  for (int i = 0; i < CLIENTS; i++) {
    if (guard.waits[ON_CLIENT + i].fd < 0 || guard.clients[i].added != number || guard.clients[i].go < 0) continue;
    char text[REPLY_BYTES];
    const char *why = is_made ? why_not_add() : "too many commands run in the task, or its limit of processes is reached";
    if (why == NULL && write(guard.clients[i].go, "g", 1) != 1) why = "its process has gone";
    close(guard.clients[i].go);
    guard.clients[i].go = -1;
    if (why == NULL) return say(i, "ok\n");
    snprintf(text, sizeof text, "error %s\n", why);
    return say(i, text);
  }
}

/* ---- receiving: one command a line ---- */

static void obey(int i, const char *line, const struct passed *files) {
  if (strcmp(line, "status") == 0) return say_status("ok", i);
  if (strcmp(line, "pids") == 0) return list_processes(i);
  if (strcmp(line, "suspend") == 0) return on_suspend(i);
  if (strcmp(line, "resume") == 0) return on_resume(i);
  if (strcmp(line, "add") == 0) return on_add(i, files);
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
  struct passed files;
  ssize_t n = receive_files(guard.waits[ON_CLIENT + i].fd, line + *size, LINE_BYTES - *size, &files, MSG_DONTWAIT);
  if (n < 0 && errno == EAGAIN) return;
  if (n <= 0) return drop_client(i);
  *size += (size_t)n;
  while (guard.waits[ON_CLIENT + i].fd >= 0 && (end = memchr(line, '\n', *size)) != NULL) {
    size_t used = (size_t)(end - line) + 1;
    *end = 0;
    obey(i, line, &files);
    *size -= used;
    memmove(line, line + used, *size);
  }
  close_files(&files);
  if (*size == LINE_BYTES) drop_client(i);
}

void accept_client(void) {
  int client = accept4(guard.waits[ON_LISTEN].fd, NULL, NULL, SOCK_CLOEXEC);
  for (int i = 0; client >= 0 && i < CLIENTS; i++) {
    if (guard.waits[ON_CLIENT + i].fd >= 0) continue;
    guard.waits[ON_CLIENT + i].fd = client;
    guard.clients[i].size = 0;
    guard.clients[i].added = 0;
    guard.clients[i].go = -1;
    return;
  }
  if (client >= 0) close(client);
}
