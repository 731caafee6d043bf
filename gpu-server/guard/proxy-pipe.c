/* Moves bytes from socket to socket through a pipe, in which the kernel keeps them (splice(2)). A direction has a pipe
 * only while bytes are in it. */
#include "proxy.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PIPE_BYTES (256 << 10)
#define ROUNDS 8     /* of one connection before the next has its turn */
#define MAX_SPARE 32 /* pipes that are kept for the next bytes */

static int spare[MAX_SPARE][2];
static size_t spare_count;

static bool take_pipe(struct flow *flow) {
  if (flow->pipe[0] >= 0) return true;
  if (spare_count > 0) {
    memcpy(flow->pipe, spare[--spare_count], sizeof flow->pipe);
    return true;
  }
  if (pipe2(flow->pipe, O_NONBLOCK | O_CLOEXEC) != 0) {
    flow->pipe[0] = flow->pipe[1] = -1;
    return false;
  }
  fcntl(flow->pipe[1], F_SETPIPE_SZ, PIPE_BYTES); /* refused to an ordinary user who has many */
  return true;
}

void give_pipe(struct flow *flow) {
  if (flow->pipe[0] < 0) return;
  if (flow->size == 0 && spare_count < MAX_SPARE) memcpy(spare[spare_count++], flow->pipe, sizeof flow->pipe);
  else {
    close(flow->pipe[0]);
    close(flow->pipe[1]);
  }
  *flow = (struct flow){.pipe = {-1, -1}, .is_over = flow->is_over};
}

enum moved move_bytes(struct flow *flow, int from, int to, uint64_t *count) {
  for (int round = 0; round < ROUNDS; round++) {
    if (flow->size == 0) {
      if (!take_pipe(flow)) return UNREADABLE;
      ssize_t size = splice(from, NULL, flow->pipe[1], NULL, PIPE_BYTES, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
      if (size < 0 && errno == EINTR) continue;
      if (size <= 0) {
        bool is_idle = size < 0 && errno == EAGAIN;
        give_pipe(flow);
        return is_idle ? IDLE : size == 0 ? OVER : UNREADABLE;
      }
      flow->size = (size_t)size;
    }
    ssize_t size = splice(flow->pipe[0], NULL, to, NULL, flow->size, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && errno == EAGAIN) return BLOCKED;
    if (size <= 0) return UNWRITABLE;
    flow->size -= (size_t)size;
    *count += (uint64_t)size;
  }
  return flow->size > 0 ? BLOCKED : MORE;
}

bool has_ended(int socket) {
  char byte;
  ssize_t size = recv(socket, &byte, 1, MSG_PEEK);
  return size == 0 || (size < 0 && errno != EAGAIN && errno != EINTR);
}

void set_window(int client, int bytes) { setsockopt(client, IPPROTO_TCP, TCP_WINDOW_CLAMP, &bytes, sizeof bytes); }
