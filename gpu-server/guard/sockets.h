/* What the files of the socket watch share (`headroom-guard --sockets`). */
#ifndef HEADROOM_SOCKETS_H
#define HEADROOM_SOCKETS_H

#include "guard.h"

/* One socket as the kernel describes it. `waiting`: connections that wait to be accepted, or unread bytes. */
struct socket_seen {
  uint32_t inode, waiting, room; /* `room`: connections that may wait; 0 unless it listens */
  uint32_t address;              /* a TCP port, or a name (IS_NAME) as a number; 0: it has none */
  bool is_listening;
};
#define IS_NAME 0x80000000u

enum { TCP4 = 1, TCP6 = 2, UNIX = 4, ALL_KINDS = 7 };

typedef void see_socket(const struct socket_seen *seen, int kind, void *with);

/* Returns the network namespace of a process, or 0. */
uint64_t space_of(pid_t pid);
/* Returns a netlink socket in the namespace of the process, or -1: not permitted, or it is gone. */
int space_open(pid_t pid);
/* Calls `see` for each listening or connected socket of these kinds. */
bool space_look(int netlink, int kinds, see_socket *see, void *with);

/* While `see` is called for a TCP socket: its address, one word for TCP4 and four for TCP6, as in the network. */
const uint32_t *socket_ip(void);

/* Numbers in ascending order, each once. */
struct numbers { uint32_t *list; size_t count, room; };
void numbers_add(struct numbers *numbers, uint32_t number);
void numbers_sort(struct numbers *numbers);
bool numbers_have(const struct numbers *numbers, uint32_t number);

/* Adds the inodes of the sockets that the process has open; examines at most `limit` descriptors. */
void sockets_of(pid_t pid, struct numbers *inodes, int limit);

#endif
