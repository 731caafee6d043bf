/*
 * headroom-guard FOLDER LEASE: the guard of one task (protocol R4). Reads what to run from standard input, answers the launch with one
 * line (`ok <pid>` or `error <text>`) and then lives by itself until nothing of the task is left: it holds the lease's deadline, obeys
 * the control socket in its folder, and leaves a durable record of the end. docs/decisions/0016-guard.md says why it is built so.
 */
#include "guard.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CLIENTS 8
#define BACKLOG 128
#define LINE_BYTES 64
#define REPLY_BYTES 256
#define DRAIN_MS 5000
#define CLOCK_GAP_MS 1000
#define FAR_AWAY_S INT64_C(8000000000)
#define PROTECTED_OOM_SCORE (-900)

enum { ON_CHILD, ON_LEASE, ON_CLOCK, ON_STOP, ON_LINK, ON_OUTPUT, ON_FOLDER, ON_LISTEN, ON_CLIENT, WAITS = ON_CLIENT + CLIENTS };

static struct {
  struct keeper keeper;
  char *cgroup;
  struct pollfd waits[WAITS];
  struct { char line[LINE_BYTES]; size_t size; } clients[CLIENTS];
  int64_t clock_gap, gap_ended; /* ms suspended so far; when the latest gap was noticed */
  bool is_leased, is_suspended, by_lease, is_killed, is_command_over, is_all_gone, is_output_done;
  bool is_stopping, has_run; /* SIGTERM was sent; the task could run since then */
  int64_t drain_until, stop_at;
  struct end end;
  int status;
} guard;

/* ---- clients ---- */

static void drop_client(int i) {
  close(guard.waits[ON_CLIENT + i].fd);
  guard.waits[ON_CLIENT + i].fd = -1;
}

/* A client that does not read is dropped, never waited for. */
static void say(int i, const char *text) {
  size_t size = strlen(text);
  if (send(guard.waits[ON_CLIENT + i].fd, text, size, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)size) drop_client(i);
}

static void say_to_all(const char *text) {
  for (int i = 0; i < CLIENTS; i++)
    if (guard.waits[ON_CLIENT + i].fd >= 0) say(i, text);
}

static void say_status(const char *prefix, int i) {
  char text[REPLY_BYTES];
  snprintf(text, sizeof text, "%s state=%s lease=%d leased=%d stopping=%d pid=%d isolated=%d dropped=%" PRIu64 "\n", prefix,
    guard.is_suspended ? "suspended" : "running", guard.by_lease, guard.is_leased, guard.is_stopping,
    (int)guard.keeper.command, guard.keeper.is_isolated,
    output_dropped());
  if (i < 0) say_to_all(text);
  else say(i, text);
}

/* ---- what happens to the task ---- */

static pid_t suspend_task(void) {
  guard.is_suspended = true;
  return processes_stop(getpid(), guard.keeper.pid, guard.cgroup);
}

static void tell_keeper(char kind) {
  struct link_message message = {kind, 0};
  if (guard.waits[ON_LINK].fd < 0) return;
  ssize_t n = send(guard.waits[ON_LINK].fd, &message, sizeof message, MSG_NOSIGNAL | MSG_DONTWAIT);
  (void)n; /* a keeper that is gone needs no word */
}

static void kill_task(void) {
  guard.is_killed = true;
  tell_keeper(LINK_KILL);
  processes_signal(getpid(), guard.keeper.pid, guard.cgroup, SIGKILL);
}

static void arm_timer(int timer, int64_t at) {
  struct itimerspec when = {.it_value = {at / 1000, at % 1000 * 1000000}};
  timerfd_settime(guard.waits[timer].fd, TFD_TIMER_ABSTIME, &when, NULL);
}

static void arm(int64_t at) { arm_timer(ON_LEASE, at); }

static void on_link(void) {
  struct link_message message;
  ssize_t n = read(guard.waits[ON_LINK].fd, &message, sizeof message);
  if (n == sizeof message) {
    guard.status = message.status;
    guard.is_command_over = true;
    return;
  }
  /* A keeper that ended without hearing the guard's last word: its own last word comes after this error. */
  if (n < 0 && (errno == ECONNRESET || errno == EINTR)) return;
  close(guard.waits[ON_LINK].fd);
  guard.waits[ON_LINK].fd = -1;
}

/* It has ended by itself: whatever is done from here on is not the cause. */
static bool is_command_dead(void) {
  struct pollfd link = {guard.waits[ON_LINK].fd, POLLIN, 0};
  if (link.fd >= 0 && poll(&link, 1, 0) > 0) on_link();
  return guard.is_command_over || is_process_dead(guard.keeper.command);
}

/* The grace is over, or there is none. */
static void end_task(void) {
  if (guard.is_killed) return;
  if (!is_command_dead()) {
    guard.end.by_order = true;
    guard.end.by_lease = guard.by_lease;
    guard.end.never_ran = guard.is_stopping && !guard.has_run;
  }
  kill_task();
}

/* SIGTERM to every process, SIGKILL to what is left at the end of the grace. A later call can only bring the end nearer. */
static void stop_task(int64_t grace) {
  int64_t at = now_boot() + grace;
  if (guard.is_killed) return;
  if (grace == 0) return end_task();
  if (guard.is_stopping) {
    if (at < guard.stop_at) arm_timer(ON_STOP, guard.stop_at = at);
    return;
  }
  if (is_command_dead()) return;
  guard.is_stopping = guard.end.by_order = true;
  guard.has_run = !guard.is_suspended;
  arm_timer(ON_STOP, guard.stop_at = at);
  tell_keeper(LINK_STOPPING);
  processes_signal(getpid(), guard.keeper.pid, guard.cgroup, SIGTERM);
}

/* Whenever the deadline comes, or starts to mean something: suspend at the lease's end, kill after another length. */
static void check_lease(void) {
  struct lease lease = lease_read();
  int64_t now = now_boot();
  bool is_rest_dying = guard.is_command_over && !guard.is_stopping;
  if (!guard.is_leased || is_rest_dying || guard.is_killed) return arm(0);
  if (now < lease.until) return arm(lease.until);
  if (now >= lease.until + lease.length) {
    guard.by_lease = true;
    if (!is_command_dead()) guard.end.by_lease = true;
    kill_task();
    return say_status("event", -1);
  }
  arm(lease.until + lease.length);
  if (guard.is_suspended) return;
  guard.by_lease = true;
  suspend_task();
  say_status("event", -1);
}

static void watch_clock(void) {
  struct itimerspec never = {.it_value = {FAR_AWAY_S, 0}};
  uint64_t count;
  while (read(guard.waits[ON_CLOCK].fd, &count, sizeof count) > 0) {}
  timerfd_settime(guard.waits[ON_CLOCK].fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &never, NULL);
  int64_t gap = suspended_for();
  if (gap - guard.clock_gap >= CLOCK_GAP_MS) {
    guard.clock_gap = gap;
    guard.gap_ended = now_boot();
  }
  check_lease();
}

/* Why it may not go on, or NULL. */
static const char *why_not_resume(void) {
  struct lease lease = lease_read();
  watch_clock();
  if (guard.is_killed) return "it is being killed";
  if (!guard.is_leased) return NULL;
  if (now_boot() >= lease.until) return "the run lease is over";
  if (lease.until - lease.length < guard.gap_ended) return "no run lease since the host was suspended";
  return NULL;
}

/* ---- control: one word a line ---- */

static void list_processes(int i) {
  struct processes found = {0};
  processes_find(&found, getpid(), guard.keeper.pid, guard.cgroup);
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
  processes_signal(getpid(), guard.keeper.pid, guard.cgroup, SIGCONT);
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

static void hear(int i) {
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

static void accept_client(void) {
  int client = accept4(guard.waits[ON_LISTEN].fd, NULL, NULL, SOCK_CLOEXEC);
  for (int i = 0; client >= 0 && i < CLIENTS; i++) {
    if (guard.waits[ON_CLIENT + i].fd >= 0) continue;
    guard.waits[ON_CLIENT + i].fd = client;
    guard.clients[i].size = 0;
    return;
  }
  if (client >= 0) close(client);
}

/* ---- the end ---- */

/* A keeper that died before its command has not told how the command ends: killed, with all that is now the guard's own. */
static void reap(void) {
  struct signalfd_siginfo info;
  int status;
  pid_t pid;
  while (read(guard.waits[ON_CHILD].fd, &info, sizeof info) > 0) {}
  while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
    if (pid != guard.keeper.pid) continue;
    while (guard.waits[ON_LINK].fd >= 0) on_link();
    if (!guard.is_command_over) guard.status = SIGKILL;
    guard.keeper.pid = 0;
  }
  if (pid < 0 && errno == ECHILD && !guard.is_all_gone) {
    guard.is_all_gone = true;
    guard.drain_until = now_boot() + DRAIN_MS;
    output_finish();
  }
  if (guard.keeper.pid == 0 && !guard.is_all_gone) kill_task();
}

/* A task that no server can find any more must not run on. */
static void on_folder(void) {
  struct signalfd_siginfo info;
  while (read(guard.waits[ON_FOLDER].fd, &info, sizeof info) > 0) {}
  if (access("started", F_OK) != 0 && !guard.is_killed) kill_task();
}

static _Noreturn void finish(void) {
  char how[32], text[REPLY_BYTES];
  struct end *end = &guard.end;
  /* SIGKILL is the guard's own, or another's; what ended otherwise before a kill without SIGTERM ended by itself. */
  bool was_killed = WIFSIGNALED(guard.status) && WTERMSIG(guard.status) == SIGKILL;
  if (!was_killed) end->by_lease = false;
  if (!was_killed && !guard.is_stopping) end->by_order = false;
  if (!was_killed) end->never_ran = false;
  bool is_recorded = record_exit(guard.status, end);
  exit_text(how, sizeof how, guard.status);
  snprintf(text, sizeof text, "ended %s lease=%d order=%d ran=%d\n", how, end->by_lease, end->by_order, !end->never_ran);
  say_to_all(text);
  unlink("socket");
  for (int i = 0; i < WAITS; i++)
    if (guard.waits[i].fd >= 0) close(guard.waits[i].fd);
  _exit(is_recorded ? 0 : 1);
}

static _Noreturn void stand_guard(void) {
  uint64_t count;
  for (;;) {
    if (guard.is_all_gone && (guard.is_output_done || now_boot() >= guard.drain_until)) finish();
    bool is_waiting = guard.is_all_gone || guard.keeper.pid == 0;
    if (poll(guard.waits, WAITS, is_waiting ? 20 : -1) < 0) continue;
    for (int i = 0; i < CLIENTS; i++)
      if (guard.waits[ON_CLIENT + i].fd >= 0 && guard.waits[ON_CLIENT + i].revents != 0) hear(i);
    if (guard.waits[ON_LISTEN].revents != 0) accept_client();
    if (guard.waits[ON_LEASE].revents != 0 && read(guard.waits[ON_LEASE].fd, &count, sizeof count) > 0) check_lease();
    if (guard.waits[ON_CLOCK].revents != 0) watch_clock();
    if (guard.waits[ON_STOP].revents != 0 && read(guard.waits[ON_STOP].fd, &count, sizeof count) > 0) end_task();
    if (guard.waits[ON_LINK].fd >= 0 && guard.waits[ON_LINK].revents != 0) on_link();
    if (guard.waits[ON_OUTPUT].revents != 0 && read(guard.waits[ON_OUTPUT].fd, &count, sizeof count) > 0) guard.is_output_done = true;
    if (guard.waits[ON_FOLDER].revents != 0) on_folder();
    if (guard.waits[ON_CHILD].revents != 0 || guard.keeper.pid == 0) reap();
  }
}

/* ---- the beginning ---- */

/* The guard's own score before it protected itself; its command gets it back. */
static int protect_from_oom(void) {
  char text[16] = "0";
  int file = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC), score = 0;
  if (file < 0) return 0;
  ssize_t n = pread(file, text, sizeof text - 1, 0);
  if (n > 0) score = atoi(text);
  int size = snprintf(text, sizeof text, "%d", PROTECTED_OOM_SCORE);
  n = write(file, text, (size_t)size); /* refused to an ordinary user */
  close(file);
  return score;
}

static void set_signals(void) {
  static const int ignored[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE, SIGUSR1, SIGUSR2, SIGALRM, SIGTSTP, SIGTTIN, SIGTTOU};
  struct sigaction quiet = {.sa_handler = SIG_DFL, .sa_flags = SA_NOCLDSTOP};
  sigset_t child;
  for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++) signal(ignored[i], SIG_IGN);
  sigaction(SIGCHLD, &quiet, NULL);
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  sigaddset(&child, SIGIO);
  sigprocmask(SIG_SETMASK, &child, NULL);
}

static void open_waits(void) {
  struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "socket"};
  sigset_t child, folder;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  sigemptyset(&folder);
  sigaddset(&folder, SIGIO);
  for (int i = 0; i < WAITS; i++) guard.waits[i] = (struct pollfd){-1, POLLIN, 0};
  guard.waits[ON_CHILD].fd = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
  guard.waits[ON_FOLDER].fd = signalfd(-1, &folder, SFD_CLOEXEC | SFD_NONBLOCK);
  guard.waits[ON_LEASE].fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
  guard.waits[ON_STOP].fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
  guard.waits[ON_CLOCK].fd = timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC | TFD_NONBLOCK);
  guard.waits[ON_OUTPUT].fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  int listen_socket = guard.waits[ON_LISTEN].fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  for (int i = 0; i <= ON_LISTEN; i++)
    if (i != ON_LINK && guard.waits[i].fd < 0) refuse("guard: %s", strerror(errno));
  if (bind(listen_socket, (struct sockaddr *)&address, sizeof address) != 0 || listen(listen_socket, BACKLOG) != 0)
    refuse("guard: its socket: %s", strerror(errno));
  /* Not inotify: a user has 128 instances of that, for all guards and all else. A kernel without dnotify does without. */
  fcntl(open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), F_NOTIFY, DN_DELETE | DN_RENAME | DN_MULTISHOT);
}

/* Nothing of the task has run yet: the command waits for a word that does not come. */
static void call_off(void) {
  kill(guard.keeper.pid, SIGKILL);
  processes_signal(getpid(), 0, "", SIGKILL);
  while (wait(NULL) > 0 || errno == EINTR) {}
}

static void start_task(const struct spec *spec, mode_t mask, int oom_score) {
  int out[2], err[2];
  if (pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0) refuse("guard: %s", strerror(errno));
  const char *error = keeper_start(&guard.keeper, spec, (int[2]){out[1], err[1]}, mask, oom_score);
  if (error != NULL) refuse("guard: cannot start a process: %s", error);
  close(out[1]);
  close(err[1]);
  guard.waits[ON_LINK].fd = guard.keeper.link;
  char pid[16];
  snprintf(pid, sizeof pid, "%d", (int)guard.keeper.command);
  cgroup_write(guard.cgroup, "cgroup.procs", pid);
  struct failure failure = {0};
  const char *why = NULL;
  if (!record_started(spec, &guard.keeper)) why = "its folder";
  else if (!output_start((int[2]){out[0], err[0]}, spec->max_output, guard.waits[ON_OUTPUT].fd)) why = "its thread";
  int code = errno;
  if (why == NULL && guard.is_leased && now_boot() >= lease_read().until) {
    call_off();
    refuse_as("lease", "the run lease is over");
  }
  if (why == NULL && keeper_go(&guard.keeper, &failure)) return;
  call_off();
  if (why != NULL) refuse("guard: %s: %s", why, strerror(code));
  if (failure.error == 0) refuse("killed before it ran");
  char text[REPLY_BYTES], kind[48];
  describe_failure(text, sizeof text, &failure, spec);
  snprintf(kind, sizeof kind, "refused %d %d", failure.step, failure.error);
  refuse_as(kind, "%s", text);
}

int main(int argc, char **argv) {
  struct spec spec;
  char answer[32];
  if (argc != 3) refuse("guard: usage: headroom-guard FOLDER LEASE");
  syscall(SYS_close_range, 3, ~0U, 0);
  set_signals();
  setsid();
  mode_t mask = umask(077);
  spec_read(&spec);
  if (!can_list_children()) refuse("guard: this kernel does not list a process's children (CONFIG_PROC_CHILDREN)");
  if (!lease_open(argv[2])) refuse("guard: lease file %s: %s", argv[2], strerror(errno));
  if (chdir(argv[1]) != 0 || !record_claim()) refuse("guard: folder %s: %s", argv[1], strerror(errno));
  if (!record_reserve_exit()) refuse("guard: folder %s: %s", argv[1], strerror(errno));
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  guard.cgroup = spec.folder_cgroup;
  guard.is_leased = spec.is_leased;
  guard.clock_gap = suspended_for();
  open_waits();
  start_task(&spec, mask, protect_from_oom());
  spec_forget(&spec);
  int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  snprintf(answer, sizeof answer, "ok %d\n", (int)guard.keeper.command);
  if (write(1, answer, strlen(answer)) < 0 && errno != EPIPE) _exit(1);
  for (int i = 0; i < 3; i++) dup2(null, i);
  close(null);
  watch_clock();
  stand_guard();
}
