/*
 * headroom-guard FOLDER LEASE: the guard of one task (protocol R4). Reads what to run from standard input,
 * answers the launch with one line (`ok <pid>` or `error <text>`), and then runs until nothing of the task is
 * left: it enforces the deadline of the lease, obeys the control socket in its folder, and leaves a durable
 * record of the end. docs/decisions/0016-guard.md explains the design.
 * headroom-guard --files UID GID: serves files of a task (files.c).
 * headroom-guard --peer: prints the user id and the process id at the other end of the Unix socket that is
 *   descriptor 3.
 * headroom-guard --sockets: reports requests that wait for tasks (sockets.c).
 * headroom-guard --proxy FOLDER …: holds requests of a task and forwards them (proxy.c).
 * headroom-guard --exec FOLDER, --forward PORT PIDS: connects a client to a task (exec.c, forward.c).
 */
#include "state.h"

#include <errno.h>
#include <fcntl.h>
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

#define BACKLOG 128
#define DRAIN_MS 5000
#define CALL_OFF_MS 5000
#define PROTECTED_OOM_SCORE (-900)

struct guard guard;

/* ---- the end ---- */

static void keeper_ended(void) {
  while (guard.waits[ON_LINK].fd >= 0) on_link();
  if (!guard.is_command_over) {
    guard.status = SIGKILL;
    guard.end.by_memory = memory_has_killed();
  }
  guard.keeper.pid = 0;
}

static bool has_ended(int pid_file, int within_ms) {
  struct pollfd process = {pid_file, POLLIN, 0};
  return poll(&process, 1, within_ms) > 0;
}

/* A keeper that died before its command did not report the end of the command: the command is killed, with
 * all processes that the guard inherited. The kernel ends all processes of a container before its init. */
static void reap(void) {
  struct signalfd_siginfo info;
  int status;
  pid_t pid;
  while (read(guard.waits[ON_CHILD].fd, &info, sizeof info) > 0) {}
  while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
    if (pid == guard.keeper.pid) keeper_ended();
  }
  if (guard.waits[ON_KEEPER].fd >= 0 && guard.keeper.pid != 0) {
    if (!has_ended(guard.waits[ON_KEEPER].fd, 0)) return;
    keeper_ended();
  }
  if (pid < 0 && errno == ECHILD && !guard.is_all_gone) {
    guard.is_all_gone = true;
    guard.drain_until = now_boot() + DRAIN_MS;
    output_finish();
  }
  if (guard.keeper.pid == 0 && !guard.is_all_gone) kill_task();
}

/* A task that no server can find any more must not continue. */
static void on_folder(void) {
  struct signalfd_siginfo info;
  while (read(guard.waits[ON_FOLDER].fd, &info, sizeof info) > 0) {}
  if (access("started", F_OK) != 0 && !guard.is_killed) kill_task();
}

static _Noreturn void finish(void) {
  char how[32], text[REPLY_BYTES];
  struct end *end = &guard.end;
  /* SIGKILL comes from the guard, or from elsewhere; a command that ended otherwise, before a kill without
   * SIGTERM, ended by itself. */
  bool was_killed = WIFSIGNALED(guard.status) && WTERMSIG(guard.status) == SIGKILL;
  if (!was_killed) end->by_lease = false;
  if (!was_killed && !guard.is_stopping) end->by_order = false;
  if (!was_killed) end->never_ran = false;
  bool is_recorded = record_exit(guard.status, end);
  exit_text(how, sizeof how, guard.status);
  snprintf(text, sizeof text, "ended %s lease=%d order=%d ran=%d memory=%d\n", how, end->by_lease, end->by_order, !end->never_ran, end->by_memory);
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
    if (guard.waits[ON_CHILD].revents != 0 || guard.waits[ON_KEEPER].revents != 0 || guard.keeper.pid == 0) reap();
  }
}

/* ---- the beginning ---- */

/* The guard's score before it protected itself, which its command gets. */
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
    if (i != ON_LINK && i != ON_KEEPER && guard.waits[i].fd < 0) refuse("guard: %s", strerror(errno));
  if (bind(listen_socket, (struct sockaddr *)&address, sizeof address) != 0 || listen(listen_socket, BACKLOG) != 0)
    refuse("guard: its socket: %s", strerror(errno));
  /* Not inotify: a user has 128 instances of that in total. On a kernel without dnotify the guard works
   * without. */
  fcntl(open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), F_NOTIFY, DN_DELETE | DN_RENAME | DN_MULTISHOT);
}

/* Nothing of the task has run yet: the command waits for a message that is never sent. A search for it can miss
 * it between the death of its keeper and its adoption by the guard, so it also ends by itself. */
static void call_off(void) {
  kill(guard.keeper.pid, SIGKILL);
  keeper_call_off(&guard.keeper);
  if (guard.keeper.pid_file >= 0) {
    has_ended(guard.keeper.pid_file, CALL_OFF_MS);
    return;
  }
  processes_signal(&(struct scope){.root = getpid(), .cgroup = "", .container_cgroup = ""}, SIGKILL);
  while (wait(NULL) > 0 || errno == EINTR) {}
}

static void start_task(const struct spec *spec, mode_t mask, int oom_score) {
  int out[2], err[2];
  if (pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0) refuse("guard: %s", strerror(errno));
  const char *error = keeper_start(&guard.keeper, spec, (int[2]){out[1], err[1]}, mask, oom_score);
  if (error != NULL && spec->is_contained) refuse_as("container", "container: %s", error);
  if (error != NULL) refuse("guard: cannot start a process: %s", error);
  close(out[1]);
  close(err[1]);
  guard.waits[ON_LINK].fd = guard.keeper.link;
  guard.waits[ON_KEEPER].fd = guard.keeper.pid_file;
  if (guard.keeper.pid_file >= 0) {
    find_container_cgroup(guard.keeper.pid, guard.container_cgroup, sizeof guard.container_cgroup);
    guard.pid_namespace = pid_namespace_of(guard.keeper.pid);
  }
  char pid[16];
  snprintf(pid, sizeof pid, "%d", (int)guard.keeper.command);
  cgroup_write(guard.cgroup, "cgroup.procs", pid);
  if (!limits_join(spec->limit_cgroups, guard.keeper.command)) {
    int error = errno;
    call_off();
    refuse_as("limits", "its limits cannot be set: %s", strerror(error));
  }
  if (spec->is_memory_limited) memory_watch(guard.keeper.command);
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
  if (argc == 1 && getpid() == 1) container_init();
  if (argc == 2 && strcmp(argv[1], "--peer") == 0) return print_peer();
  if (argc == 2 && strcmp(argv[1], "--sockets") == 0) return watch_sockets();
  if (argc == 4 && strcmp(argv[1], "--files") == 0) return serve_files(argv[2], argv[3]);
  if (argc == 3 && strcmp(argv[1], "--exec") == 0) return exec_in_task(argv[2]);
  if (argc == 4 && strcmp(argv[1], "--forward") == 0) return forward_port(argv[2], argv[3]);
  if (argc > 2 && strcmp(argv[1], "--proxy") == 0) return run_proxy(argc - 2, argv + 2);
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
