/*
 * The keeper: child of the guard, parent of the command, reaper of all its descendants; where namespaces
 * allow, PID 1 of the task's own PID namespace. It ends the task when its command has ended or its guard is
 * gone, and itself when nothing of the task is left.
 */
#include "guard.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define KILL_AGAIN_MS 20
#define INHERITED_FILES 256
#define READ_LIMIT_MS 5000

/* ---- before the command is executed ---- */

/* launch-refusal.ts knows these by number. */
enum { STEP_GROUPS, STEP_GROUP, STEP_USER, STEP_PRIVILEGES, STEP_FOLDER, STEP_COMMAND };

void describe_failure(char *text, size_t size, const struct failure *failure, const struct spec *spec) {
  const char *why = strerror(failure->error);
  switch (failure->step) {
    case STEP_GROUPS:
    case STEP_GROUP: snprintf(text, size, "cannot run as group %ld: %s", spec->gid, why); break;
    case STEP_USER: snprintf(text, size, "cannot run as user %ld: %s", spec->uid, why); break;
    case STEP_PRIVILEGES: snprintf(text, size, "cannot give up new privileges: %s", why); break;
    case STEP_FOLDER: snprintf(text, size, "working directory %s: %s", spec->working_directory, why); break;
    default: snprintf(text, size, "command %s: %s", spec->argv[0], why);
  }
}

static _Noreturn void report(const struct launch *launch, struct failure failure) {
  ssize_t n = write(launch->failure, &failure, sizeof failure);
  _exit(n < 0 ? 126 : 127);
}

static _Noreturn void fail(const struct launch *launch, int step) { report(launch, (struct failure){step, errno}); }

static void set_oom_score(int score) {
  char text[16];
  int size = snprintf(text, sizeof text, "%d", score), file = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (file < 0) return;
  ssize_t n = write(file, text, (size_t)size);
  (void)n;
  close(file);
}

/* Returns the step that failed, or -1. */
static int become_user(const struct spec *spec) {
  gid_t gid = (gid_t)spec->gid, groups[2] = {gid, (gid_t)spec->own_group};
  if (spec->uid < 0) return -1;
  if (geteuid() == 0 && setgroups(spec->own_group < 0 ? 1 : 2, groups) != 0) return STEP_GROUPS;
  if (setresgid(gid, gid, gid) != 0) return STEP_GROUP;
  return setresuid((uid_t)spec->uid, (uid_t)spec->uid, (uid_t)spec->uid) == 0 ? -1 : STEP_USER;
}

/*
 * Signals that the server's parent ignores must not stay ignored in the task. Uses the system call, because
 * the C library hides two signals, which a parent may have left ignored (make does). Zeros mean SIG_DFL, no
 * flags and an empty mask on every CPU architecture.
 */
static void default_signals(void) {
  const unsigned long nothing[8] = {0};
  for (int signal_number = 1; signal_number < NSIG; signal_number++) {
    syscall(SYS_rt_sigaction, signal_number, nothing, NULL, (NSIG - 1) / 8);
  }
}

static int confine(const struct launch *launch, pid_t parent) {
  sigset_t none;
  set_oom_score(launch->oom_score);
  default_signals();
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  int step = become_user(launch->spec);
  if (step >= 0) return step;
  /* No program of the task gains privileges by a setuid bit or file capabilities. */
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return STEP_PRIVILEGES;
  prctl(PR_SET_PDEATHSIG, SIGKILL); /* after the change of user, which clears it */
  if (getppid() != parent) _exit(125);
  umask(launch->umask);
  if (chdir(launch->spec->working_directory) != 0) return STEP_FOLDER;
  environ = launch->spec->env;
  return -1;
}

bool keeper_confine(const struct launch *launch, pid_t parent, struct failure *failure) {
  int step = confine(launch, parent);
  *failure = (struct failure){step, errno};
  return step < 0;
}

static _Noreturn void run_command(const struct launch *launch, pid_t keeper) {
  struct link_message ready = {LINK_READY, 0};
  struct failure failure;
  char go;
  if (write(launch->link, &ready, sizeof ready) < 0 || read(launch->go, &go, 1) != 1) _exit(125);
  setsid();
  int null = open("/dev/null", O_RDONLY);
  if (null < 0) fail(launch, STEP_COMMAND);
  dup2(null, 0);
  dup2(launch->output[0], 1);
  dup2(launch->output[1], 2);
  close(null);
  if (!keeper_confine(launch, keeper, &failure)) report(launch, failure);
  execvp(launch->spec->argv[0], launch->spec->argv);
  fail(launch, STEP_COMMAND);
}

/* ---- the keeper ---- */

/* Closes what must end with the guard: its socket must not answer, its pipes must not stay open. */
static void let_go_of_guard(const struct launch *launch) {
  for (int file = 3; file < INHERITED_FILES; file++)
    if (file != launch->link && file != launch->go && file != launch->failure && file != launch->output[0] && file != launch->output[1])
      close(file);
  int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int file = 0; file < 3; file++) dup2(null, file);
  close(null);
}

static void kill_rest(bool is_isolated) {
  if (is_isolated) kill(-1, SIGKILL);
  else processes_signal(&(struct scope){.root = getpid(), .cgroup = "", .container_cgroup = ""}, SIGKILL);
}

/* Reaps ended processes; returns true while anything of the task is left. */
static bool reap(pid_t command, int link, bool *is_over) {
  int status;
  pid_t pid;
  while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
    added_reaped(pid);
    if (pid != command) continue;
    struct link_message exited = {LINK_EXITED, status};
    *is_over = true;
    if (send(link, &exited, sizeof exited, MSG_NOSIGNAL) < 0) continue; /* no guard any more: see below */
  }
  return pid == 0;
}

/* What the guard has said. */
struct heard { bool is_stopping, is_killing, is_end_read; };

static void add(const struct launch *launch, int number, struct passed *files) {
  bool is_added = added_start(launch, number, files);
  struct link_message answer = {is_added ? LINK_ADDED : LINK_NOT_ADDED, number};
  close_files(files);
  send(launch->link, &answer, sizeof answer, MSG_NOSIGNAL);
}

/* Reads messages of the guard. A closed link means that the guard is gone. */
static void hear(int *link, struct heard *heard, const struct launch *launch) {
  struct link_message message;
  struct passed files;
  while (*link >= 0) {
    ssize_t n = receive_files(*link, &message, sizeof message, &files, MSG_DONTWAIT);
    if (n < 0 && errno == EAGAIN) return;
    char kind = n == sizeof message ? message.kind : 0;
    if (kind == LINK_STOPPING) heard->is_stopping = true;
    else if (kind == LINK_READ) heard->is_end_read = true;
    else if (kind == LINK_ADD) add(launch, message.status, &files);
    else if (kind == LINK_DROP) added_drop(message.status);
    else {
      heard->is_killing = true;
      if (kind != LINK_KILL) *link = -1;
    }
  }
}

/* The cgroup of a container goes with its init: the guard first reads there whether memory ended the command. */
static void wait_until_read(int *link, struct heard *heard, const struct launch *launch) {
  int64_t until = now_boot() + READ_LIMIT_MS;
  for (hear(link, heard, launch); *link >= 0 && !heard->is_end_read && now_boot() < until; hear(link, heard, launch)) {
    struct pollfd wait = {*link, POLLIN, 0};
    poll(&wait, 1, READ_LIMIT_MS);
  }
}

/*
 * A command that ends by itself ends the rest too. During a stop the rest keeps what is left of the grace;
 * the guard reports its end. The guard sends its message before it signals, and the keeper reaps before it
 * reads, so the stop is known when the end of a command by that signal is judged.
 */
static _Noreturn void keep(pid_t command, const struct launch *launch, int children) {
  bool is_over = false;
  struct heard heard = {0};
  struct pollfd waits[2] = {{children, POLLIN, 0}, {launch->link, POLLIN, 0}};
  while (reap(command, launch->link, &is_over)) {
    hear(&waits[1].fd, &heard, launch);
    bool is_ending = heard.is_killing || (is_over && !heard.is_stopping);
    if (is_ending) kill_rest(launch->is_isolated);
    bool is_dropping = added_kill_dropped();
    if (poll(waits, 2, is_ending || is_dropping ? KILL_AGAIN_MS : -1) < 0) continue;
    struct signalfd_siginfo info;
    if (waits[0].revents != 0 && read(children, &info, sizeof info) < 0) continue;
  }
  if (launch->is_init) wait_until_read(&waits[1].fd, &heard, launch);
  hear(&waits[1].fd, &heard, launch); /* unread messages would be an error at the guard's end */
  _exit(0);
}

static void enter_namespace(int link) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (mount("none", "/", NULL, MS_REC | MS_SLAVE, NULL) == 0 && mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) == 0)
    return;
  struct link_message message = {LINK_NO_NAMESPACE, 0};
  if (send(link, &message, sizeof message, MSG_NOSIGNAL) < 0) _exit(1);
  _exit(0);
}

_Noreturn void keeper_run(const struct launch *launch) {
  sigset_t child;
  prctl(PR_SET_NAME, "headroom-keeper");
  setsid();
  let_go_of_guard(launch);
  if (launch->is_isolated && !launch->is_init) enter_namespace(launch->link);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  int children = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
  pid_t keeper = getpid(), command = children < 0 ? -1 : fork();
  if (command < 0) _exit(1);
  if (command == 0) run_command(launch, keeper);
  close(launch->go);
  close(launch->failure);
  close(launch->output[0]);
  close(launch->output[1]);
  keep(command, launch, children);
}

/* ---- the guard's side ---- */

/* The kernel reports the pid of the sender, translated to the guard's namespace. */
bool receive_ready(int link, struct link_message *message, pid_t *from) {
  union { char bytes[CMSG_SPACE(sizeof(struct ucred))]; struct cmsghdr align; } control;
  struct iovec part = {message, sizeof *message};
  struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
  ssize_t n;
  while ((n = recvmsg(link, &header, 0)) < 0 && errno == EINTR) {}
  struct cmsghdr *about = n == sizeof *message ? CMSG_FIRSTHDR(&header) : NULL;
  if (about == NULL || about->cmsg_type != SCM_CREDENTIALS) return false;
  struct ucred sender;
  memcpy(&sender, CMSG_DATA(about), sizeof sender);
  *from = sender.pid;
  return true;
}

static const char *start_once(struct keeper *keeper, struct launch launch, bool *has_namespace) {
  int link[2], go[2], failure[2], yes = 1;
  struct link_message message = {0};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, link) != 0 || pipe2(go, O_CLOEXEC) != 0 || pipe2(failure, O_CLOEXEC) != 0 ||
      setsockopt(link[0], SOL_SOCKET, SO_PASSCRED, &yes, sizeof yes) != 0)
    return strerror(errno);
  launch.link = link[1];
  launch.go = go[0];
  launch.failure = failure[1];
  launch.is_isolated = *has_namespace;
  long flags = SIGCHLD | (launch.is_isolated ? CLONE_NEWPID | CLONE_NEWNS : 0);
  keeper->pid = (pid_t)syscall(SYS_clone, flags, 0, 0, 0, 0);
  if (keeper->pid == 0) keeper_run(&launch);
  int error = errno;
  close(link[1]);
  close(go[0]);
  close(failure[1]);
  keeper->link = link[0];
  keeper->go = go[1];
  keeper->failure = failure[0];
  keeper->is_isolated = launch.is_isolated;
  if (keeper->pid > 0 && receive_ready(link[0], &message, &keeper->command) && message.kind == LINK_READY) return NULL;
  *has_namespace = false;
  close(link[0]);
  close(go[1]);
  close(failure[0]);
  if (keeper->pid < 0) return strerror(error);
  kill(keeper->pid, SIGKILL);
  while (waitpid(keeper->pid, NULL, 0) < 0 && errno == EINTR) {}
  return "its keeper died";
}

const char *keeper_start(struct keeper *keeper, const struct spec *spec, const int output[2], mode_t mask, int oom_score) {
  if (spec->is_contained) return container_start(keeper, spec, output);
  struct launch launch = {.spec = spec, .output = output, .umask = mask, .oom_score = oom_score};
  bool has_namespace = spec->is_isolated;
  keeper->pid_file = -1;
  if (has_namespace && start_once(keeper, launch, &has_namespace) == NULL) return NULL;
  return start_once(keeper, launch, &has_namespace);
}

/* A command that still waits reads the end of the pipe and exits, wherever its keeper is. */
void keeper_call_off(struct keeper *keeper) {
  if (keeper->go >= 0) close(keeper->go);
  keeper->go = -1;
}

bool keeper_go(struct keeper *keeper, struct failure *failure) {
  ssize_t n = write(keeper->go, "g", 1);
  keeper_call_off(keeper);
  while (n == 1 && (n = read(keeper->failure, failure, sizeof *failure)) < 0 && errno == EINTR) n = 1;
  close(keeper->failure);
  return n == 0;
}
