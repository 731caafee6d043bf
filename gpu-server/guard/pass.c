/* Passes open files over a Unix socket, together with a message. */
#include "guard.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

union control { char bytes[CMSG_SPACE(MAX_PASSED * sizeof(int)) + CMSG_SPACE(sizeof(struct ucred))]; struct cmsghdr align; };

bool pass_files(int link, const void *message, size_t size, const int *files, size_t count) {
  union control control = {0};
  struct iovec part = {(void *)(uintptr_t)message, size};
  struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = CMSG_SPACE(count * sizeof(int))};
  struct cmsghdr *about = CMSG_FIRSTHDR(&header);
  about->cmsg_level = SOL_SOCKET;
  about->cmsg_type = SCM_RIGHTS;
  about->cmsg_len = CMSG_LEN(count * sizeof(int));
  memcpy(CMSG_DATA(about), files, count * sizeof(int));
  ssize_t n;
  while ((n = sendmsg(link, &header, MSG_NOSIGNAL)) < 0 && errno == EINTR) {}
  return n == (ssize_t)size;
}

static void take(const struct cmsghdr *about, struct passed *files) {
  size_t count = (about->cmsg_len - CMSG_LEN(0)) / sizeof(int);
  int all[MAX_PASSED];
  memcpy(all, CMSG_DATA(about), count * sizeof(int));
  for (size_t i = 0; i < count; i++) {
    if (files->count < MAX_PASSED) files->list[files->count++] = all[i];
    else close(all[i]);
  }
}

ssize_t receive_files(int link, void *message, size_t size, struct passed *files, int flags) {
  union control control;
  struct iovec part = {message, size};
  struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
  ssize_t n;
  files->count = 0;
  while ((n = recvmsg(link, &header, flags | MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR) {}
  if (n < 0) return n;
  for (struct cmsghdr *about = CMSG_FIRSTHDR(&header); about != NULL; about = CMSG_NXTHDR(&header, about))
    if (about->cmsg_level == SOL_SOCKET && about->cmsg_type == SCM_RIGHTS) take(about, files);
  return n;
}

void close_files(struct passed *files) {
  for (size_t i = 0; i < files->count; i++) close(files->list[i]);
  files->count = 0;
}
