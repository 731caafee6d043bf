/* Names the user and the process at the other end of a Unix socket, for a server that cannot ask the kernel itself. */
#include "guard.h"

#include <stdio.h>
#include <sys/socket.h>

#define SOCKET 3

int print_peer(void) {
  struct ucred peer;
  socklen_t size = sizeof peer;
  if (getsockopt(SOCKET, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return 1;
  return printf("%u %d\n", (unsigned)peer.uid, (int)peer.pid) < 0 || fflush(stdout) != 0;
}
