/*
 * Commands that run in a task besides its own, for a client (`headroom exec`). Each has a parent that reaps its
 * descendants, a child of the keeper, so that all of them are processes of the task: suspended with it, counted
 * in its limits, killed with it. They are also killed when the client has gone. docs/decisions/0123 explains it.
 */
#include "guard.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Above all files that the keeper has open. */
#define HIGH_FILE 64
#define FIRST_FILE 3
#define KILL_AGAIN_NS 20000000
#define EXIT_CANNOT_RUN 125
#define EXIT_NOT_EXECUTABLE 126
#define EXIT_NOT_FOUND 127

enum { FILE_LINK = FIRST_FILE + ADDED_LINK, FILE_IN = FIRST_FILE + ADDED_IN, FILE_OUT = FIRST_FILE + ADDED_OUT,
  FILE_ERR = FIRST_FILE + ADDED_ERR, FILE_GO = FIRST_FILE + ADDED_GO };

static struct { int number; pid_t pid; bool is_ending; } added[MAX_ADDED];

/* ---- the command ---- */

static _Noreturn void give_up(int code, const char *what) {
  dprintf(FILE_ERR, "headroom: %s: %s\n", what, strerror(errno));
  _exit(code);
}

static void open_terminal(const struct winsize *size) {
  int master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC), unlocked = 0;
  if (master < 0 || ioctl(master, TIOCSPTLCK, &unlocked) != 0) give_up(EXIT_CANNOT_RUN, "no terminal");
  int terminal = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY);
  if (terminal < 0) give_up(EXIT_CANNOT_RUN, "no terminal");
  ioctl(terminal, TIOCSWINSZ, size);
  if (!pass_files(FILE_LINK, "M", 1, &master, 1)) give_up(EXIT_CANNOT_RUN, "its client has gone");
  close(master);
  ioctl(terminal, TIOCSCTTY, 0);
  for (int file = 0; file < 3; file++) dup2(terminal, file);
  if (terminal > 2) close(terminal);
}

/* With the TERM of the client. */
static char **with_terminal(char **env, const char *kind) {
  size_t count = 0, kept = 0;
  char *variable;
  for (char **each = env; *each != NULL; each++) count++;
  char **all = calloc(count + 2, sizeof *all);
  if (all == NULL || asprintf(&variable, "TERM=%s", kind) < 0) give_up(EXIT_CANNOT_RUN, "out of memory");
  for (char **each = env; *each != NULL; each++)
    if (strncmp(*each, "TERM=", 5) != 0) all[kept++] = *each;
  all[kept] = variable;
  return all;
}

static _Noreturn void run_command(const struct launch *launch, const struct added_request *request, pid_t parent) {
  struct failure failure = {0};
  char text[ADDED_TEXT_BYTES];
  setsid();
  if (!keeper_confine(launch, parent, &failure)) {
    describe_failure(text, sizeof text, &failure, launch->spec);
    dprintf(FILE_ERR, "headroom: %s\n", text);
    _exit(EXIT_CANNOT_RUN);
  }
  if (request->has_terminal) {
    environ = with_terminal(environ, request->terminal);
    open_terminal(&request->size);
  } else {
    dup2(FILE_IN, 0);
    dup2(FILE_OUT, 1);
    dup2(FILE_ERR, 2);
  }
  execvp(request->argv[0], request->argv);
  give_up(errno == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE, request->argv[0]);
}

/* ---- its parent ---- */

/* Only the files of this command stay open, at fixed numbers. */
static void keep_files(const struct passed *files) {
  int high[ADDED_FILES];
  for (int i = 0; i < ADDED_FILES; i++) high[i] = fcntl(files->list[i], F_DUPFD_CLOEXEC, HIGH_FILE);
  for (int i = 0; i < ADDED_FILES; i++)
    if (high[i] < 0 || dup3(high[i], FIRST_FILE + i, O_CLOEXEC) < 0) _exit(1);
  syscall(SYS_close_range, FIRST_FILE + ADDED_FILES, ~0U, 0);
}

static void ignore_signals(void) {
  static const int ignored[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE, SIGUSR1, SIGUSR2, SIGALRM, SIGTSTP, SIGTTIN, SIGTTOU};
  for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++) signal(ignored[i], SIG_IGN);
}

/* Returns the status of the command once nothing that it started is left. */
static int wait_for(pid_t command) {
  int status, result = 0;
  pid_t pid;
  while ((pid = waitpid(-1, &status, 0)) != command)
    if (pid < 0 && errno != EINTR) return result;
  result = status;
  for (;;) {
    processes_signal(&(struct scope){.root = getpid(), .cgroup = "", .container_cgroup = ""}, SIGKILL);
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {}
    if (pid < 0 && errno == ECHILD) return result;
    nanosleep(&(struct timespec){0, KILL_AGAIN_NS}, NULL);
  }
}

static _Noreturn void run_parent(const struct launch *launch, const struct passed *files, pid_t keeper) {
  const struct spec *spec = launch->spec;
  struct added_request request;
  char go;
  keep_files(files);
  prctl(PR_SET_NAME, "headroom-added");
  ignore_signals();
  setsid();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != keeper || prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) _exit(1);
  /* 0: this process, which all processes of the command descend from. */
  cgroup_write(spec->folder_cgroup, "cgroup.procs", "0");
  if (!limits_join(spec->limit_cgroups, 0)) give_up(EXIT_CANNOT_RUN, "its limits cannot be set");
  if (read(FILE_GO, &go, 1) != 1) _exit(1);
  dup2(FIRST_FILE + ADDED_REQUEST, 0);
  added_request_read(&request);
  pid_t parent = getpid(), command = fork();
  if (command == 0) run_command(launch, &request, parent);
  if (command < 0) give_up(EXIT_CANNOT_RUN, "cannot start a process");
  close(FILE_IN);
  close(FILE_OUT);
  struct link_message exited = {LINK_EXITED, wait_for(command)};
  send(FILE_LINK, &exited, sizeof exited, MSG_NOSIGNAL);
  _exit(0);
}

/* ---- the keeper's side ---- */

bool added_start(const struct launch *launch, int number, const struct passed *files) {
  int place = 0;
  while (place < MAX_ADDED && added[place].pid != 0) place++;
  if (place == MAX_ADDED || files->count != ADDED_FILES) return false;
  pid_t keeper = getpid(), pid = fork();
  if (pid == 0) run_parent(launch, files, keeper);
  if (pid < 0) return false;
  added[place].number = number;
  added[place].pid = pid;
  added[place].is_ending = false;
  return true;
}

void added_drop(int number) {
  for (int i = 0; i < MAX_ADDED; i++)
    if (added[i].pid != 0 && added[i].number == number) added[i].is_ending = true;
}

void added_reaped(pid_t pid) {
  for (int i = 0; i < MAX_ADDED; i++)
    if (added[i].pid == pid) added[i].pid = 0;
}

/* Its parent may be suspended: the descendants are killed first, so that none of them escapes to the keeper. */
static void kill_added(pid_t pid) {
  struct processes found = {0};
  struct scope scope = {.root = pid, .cgroup = "", .container_cgroup = ""};
  bool is_left = false;
  processes_find(&found, &scope);
  for (size_t i = 0; i < found.count; i++) {
    if (found.list[i].is_dead) continue;
    is_left = true;
    kill(found.list[i].pid, SIGKILL);
  }
  free(found.list);
  if (!is_left) kill(pid, SIGKILL);
}

bool added_kill_dropped(void) {
  bool is_any = false;
  for (int i = 0; i < MAX_ADDED; i++) {
    if (added[i].pid == 0 || !added[i].is_ending) continue;
    is_any = true;
    kill_added(added[i].pid);
  }
  return is_any;
}
