/*
 * A task in a container. Its guard stays on the host, as for every other task: lease, output, record and
 * control socket are not in the container. The init of the container is this program too, as the keeper: it
 * runs as the user of the attempt, without privileges, and gets what to run, the pipes and its link over one
 * connection.
 */
#include "guard.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

/* In the guard's folder; the server mounts it at INIT_SOCKET. */
#define GUARD_SOCKET "init"
#define INIT_SOCKET "/headroom/init"
/* guard-launch.ts has this line too. */
#define READY_LINE "init\n"

enum { FILE_SPEC, FILE_OUT, FILE_ERR, FILE_GO, FILE_FAILURE, FILES };

/* ---- the guard's side ---- */

static int listen_for_init(const struct spec *spec) {
  struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = GUARD_SOCKET};
  int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof address) != 0) return -1;
  if (spec->uid >= 0 && chown(GUARD_SOCKET, (uid_t)spec->uid, (gid_t)spec->gid) != 0) return -1;
  return listen(listener, 1) == 0 ? listener : -1;
}

/* Returns the connection, or -1 when the server has gone: then nothing may start any more. */
static int accept_init(int listener) {
  struct pollfd waits[2] = {{listener, POLLIN, 0}, {1, 0, 0}};
  for (;;) {
    if (poll(waits, 2, -1) < 0) continue;
    if (waits[1].revents != 0) return -1;
    int link = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (link >= 0 || (errno != EINTR && errno != ECONNABORTED)) return link;
  }
}

/* Only the container's init has the socket, and it runs as the user of the attempt. The pidfd names the peer:
 * while the connection is open, its pid is not used again. */
static const char *identify(struct keeper *keeper, const struct spec *spec) {
  struct ucred peer;
  socklen_t size = sizeof peer;
  int yes = 1;
  if (getsockopt(keeper->link, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return strerror(errno);
  if (peer.pid <= 0 || (spec->uid >= 0 && peer.uid != (uid_t)spec->uid)) return "the init of the container has another user";
  if (setsockopt(keeper->link, SOL_SOCKET, SO_PASSCRED, &yes, sizeof yes) != 0) return strerror(errno);
  /* Apptainer lets scripts of the image run before its init. */
  if (!is_init_of_namespace(peer.pid)) return "a process other than the init of the container connected";
  keeper->pid = peer.pid;
  keeper->pid_file = (int)syscall(SYS_pidfd_open, peer.pid, 0);
  return keeper->pid_file < 0 ? strerror(errno) : NULL;
}

static int spec_file(const struct spec *spec) {
  int file = memfd_create("spec", MFD_CLOEXEC);
  if (file < 0) return -1;
  const char *at = spec->memory;
  for (size_t left = spec->size; left > 0;) {
    ssize_t n = write(file, at, left);
    if (n <= 0) return -1;
    at += n;
    left -= (size_t)n;
  }
  return lseek(file, 0, SEEK_SET) == 0 ? file : -1;
}

/* Returns NULL once the keeper has made the process that will be the command. */
static const char *hand_over(struct keeper *keeper, const struct spec *spec, const int output[2]) {
  int go[2], failure[2], file = spec_file(spec);
  struct link_message message = {0};
  if (file < 0 || pipe2(go, O_CLOEXEC) != 0 || pipe2(failure, O_CLOEXEC) != 0) return strerror(errno);
  bool is_sent = pass_files(keeper->link, "F", 1, (int[FILES]){file, output[0], output[1], go[0], failure[1]}, FILES);
  close(file);
  close(go[0]);
  close(failure[1]);
  keeper->go = go[1];
  keeper->failure = failure[0];
  keeper->is_isolated = true;
  if (is_sent && receive_ready(keeper->link, &message, &keeper->command) && message.kind == LINK_READY) return NULL;
  return "the init of the container died";
}

const char *container_start(struct keeper *keeper, const struct spec *spec, const int output[2]) {
  int listener = listen_for_init(spec);
  if (listener < 0) return strerror(errno);
  if (write(1, READY_LINE, strlen(READY_LINE)) < 0) return strerror(errno);
  keeper->link = accept_init(listener);
  close(listener);
  unlink(GUARD_SOCKET);
  if (keeper->link < 0) return "its server has gone";
  const char *error = identify(keeper, spec);
  return error != NULL ? error : hand_over(keeper, spec, output);
}

/* ---- the init's side ---- */

static bool has_name_in(const char *assignment, char **env) {
  size_t size = strcspn(assignment, "=") + 1;
  for (char **each = env; *each != NULL; each++)
    if (strncmp(*each, assignment, size) == 0) return true;
  return false;
}

/* The variables of the image, and those of the task, which take precedence. */
static char **merged_environment(char **ours) {
  size_t count = 0, kept = 0;
  for (char **each = ours; *each != NULL; each++) count++;
  for (char **each = environ; *each != NULL; each++) count++;
  char **merged = calloc(count + 1, sizeof *merged);
  if (merged == NULL) refuse("guard: out of memory");
  for (char **each = environ; *each != NULL; each++)
    if (!has_name_in(*each, ours)) merged[kept++] = *each;
  for (char **each = ours; *each != NULL; each++) merged[kept++] = *each;
  return merged;
}

void container_init(void) {
  struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = INIT_SOCKET};
  struct spec spec;
  sigset_t child;
  struct passed files;
  char kind;
  int link = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  /* The task runs as the same user: it may neither trace the init nor open its files. */
  prctl(PR_SET_DUMPABLE, 0);
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  sigprocmask(SIG_SETMASK, &child, NULL);
  if (link < 0 || connect(link, (struct sockaddr *)&address, sizeof address) != 0)
    refuse("guard: its socket: %s", strerror(errno));
  if (receive_files(link, &kind, 1, &files, 0) != 1 || files.count != FILES) refuse("guard: it has gone");
  dup2(files.list[FILE_SPEC], 0);
  spec_read(&spec);
  spec.env = merged_environment(spec.env);
  mode_t mask = umask(0);
  struct launch launch = {.spec = &spec, .output = &files.list[FILE_OUT], .link = link, .go = files.list[FILE_GO],
    .failure = files.list[FILE_FAILURE], .umask = mask, .is_isolated = true, .is_init = true};
  keeper_run(&launch);
}
