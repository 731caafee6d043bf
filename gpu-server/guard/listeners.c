/* Finds the sockets that listen on a TCP port, and connects to that of a task. A port number alone says nothing about
 * who listens: the inode of the socket does. */
#include "sockets.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct search { struct listeners *found; const struct numbers *ours; };

static void see(const struct socket_seen *seen, int kind, void *with) {
  struct search *search = with;
  struct listeners *found = search->found;
  if (!seen->is_listening || seen->address != found->port || found->count == MAX_LISTENERS) return;
  struct listener *listener = &found->list[found->count++];
  *listener = (struct listener){.inode = seen->inode, .kind = kind, .is_ours = numbers_have(search->ours, seen->inode)};
  memcpy(listener->ip, socket_ip(), (kind == TCP4 ? 1 : 4) * sizeof *listener->ip);
}

bool listeners_find(struct listeners *found, int netlink, uint32_t port, const struct numbers *ours) {
  *found = (struct listeners){.port = port};
  return space_look(netlink, TCP4 | TCP6 | LISTENING_ONLY, see, &(struct search){found, ours});
}

static bool is_wildcard(const struct listener *listener) {
  return (listener->ip[0] | listener->ip[1] | listener->ip[2] | listener->ip[3]) == 0;
}

static bool is_same(const struct listener *a, const struct listener *b) {
  return a->kind == b->kind && memcmp(a->ip, b->ip, sizeof a->ip) == 0;
}

struct listener listener_target(const struct listener *listener) {
  struct listener target = *listener;
  if (!is_wildcard(listener)) return target;
  if (listener->kind == TCP4) target.ip[0] = htonl(INADDR_LOOPBACK);
  else memcpy(target.ip, &in6addr_loopback, sizeof target.ip);
  return target;
}

/* With more listeners than were looked at, one of them may be another's. */
bool listeners_contest(const struct listeners *found, const struct listener *target) {
  if (found->count == MAX_LISTENERS) return true;
  for (size_t i = 0; i < found->count; i++) {
    const struct listener *other = &found->list[i];
    if (!other->is_ours && (is_same(other, target) || is_wildcard(other))) return true;
  }
  return false;
}

bool listeners_have(const struct listeners *found, const struct listener *target) {
  if (listeners_contest(found, target)) return false;
  for (size_t i = 0; i < found->count; i++)
    if (found->list[i].inode == target->inode) return true;
  return false;
}

int listener_connect(uint32_t port, const struct listener *target) {
  struct sockaddr_in ip4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = target->ip[0]};
  struct sockaddr_in6 ip6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
  bool is_ip4 = target->kind == TCP4;
  memcpy(&ip6.sin6_addr, target->ip, sizeof ip6.sin6_addr);
  int connection = socket(is_ip4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (connection < 0) return -1;
  const struct sockaddr *address = is_ip4 ? (const struct sockaddr *)&ip4 : (const struct sockaddr *)&ip6;
  if (connect(connection, address, is_ip4 ? sizeof ip4 : sizeof ip6) == 0 || errno == EINPROGRESS) return connection;
  close(connection);
  return -1;
}
