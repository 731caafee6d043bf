/*
 * headroom-guard --exec FOLDER: runs a command in the task whose guard has that folder, for a client (channel.c).
 * The guard gets the ends of three pipes and has the command made by the keeper (added.c). When this process ends,
 * the guard ends the command.
 */
#include "guard.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <signal.h>
#include <unistd.h>

#define REQUEST_BYTES (64u << 10)
#define ANSWER_MS 10000
#define LINE_BYTES 1024

static int connect_to_guard(const char *folder) {
  struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "socket"};
  int guard = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  /* From inside the folder: its path may be longer than that of a socket. */
  if (chdir(folder) != 0 || guard < 0 || connect(guard, (struct sockaddr *)&address, sizeof address) != 0)
    channel_refuse("the guard of the task does not answer");
  return guard;
}

static int request_file(void) {
  static char text[REQUEST_BYTES];
  size_t size = channel_request(text, sizeof text);
  int file = memfd_create("request", MFD_CLOEXEC);
  if (file < 0 || write(file, text, size) != (ssize_t)size || lseek(file, 0, SEEK_SET) != 0) channel_refuse("%s", strerror(errno));
  return file;
}

/* Reads one line; the guard also sends lines about the task, which are skipped. */
static void read_line(int guard, char *line, size_t room) {
  int64_t until = now_boot() + ANSWER_MS;
  for (size_t size = 0;;) {
    struct pollfd wait = {guard, POLLIN, 0};
    int64_t left = until - now_boot();
    if (left <= 0 || poll(&wait, 1, (int)left) < 1) channel_refuse("the guard of the task does not answer");
    if (read(guard, line + size, 1) != 1) channel_refuse("the task has ended");
    if (line[size] != '\n') {
      if (++size == room) channel_refuse("the guard of the task does not answer");
      continue;
    }
    line[size] = 0;
    if (strncmp(line, "event ", 6) != 0) return;
    size = 0;
  }
}

/* A guard of an earlier version knows no such command. */
static void await_start(int guard) {
  char line[LINE_BYTES];
  read_line(guard, line, sizeof line);
  if (strcmp(line, "ok") == 0) return;
  if (strncmp(line, "ended ", 6) == 0) channel_refuse("the task has ended");
  if (strcmp(line, "error unknown command") == 0) channel_refuse("old_guard");
  channel_refuse("%s", strncmp(line, "error ", 6) == 0 ? line + 6 : line);
}

int exec_in_task(const char *folder) {
  int request = request_file(), link[2], in[2], out[2], err[2];
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  int guard = connect_to_guard(folder);
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, link) != 0 || pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0 ||
      pipe2(err, O_CLOEXEC) != 0)
    channel_refuse("%s", strerror(errno));
  char has_terminal = '0';
  if (pread(request, &has_terminal, 1, 0) != 1) exit(2);
  if (!pass_files(guard, "add\n", 4, (int[]){request, link[1], in[0], out[1], err[1]}, ADDED_GO))
    channel_refuse("the guard of the task does not answer");
  int given[] = {request, link[1], in[0], out[1], err[1]};
  for (size_t i = 0; i < sizeof given / sizeof *given; i++) close(given[i]);
  await_start(guard);
  fcntl(in[1], F_SETFL, O_WRONLY | O_NONBLOCK);
  struct channel channel = {.to = in[1], .from = out[0], .errors = err[0], .link = link[0], .guard = guard, .has_terminal = has_terminal == '1'};
  if (channel.has_terminal) { /* it comes over the link */
    close(in[1]);
    channel.to = -1;
  }
  channel_run(&channel);
}
