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

/* With LISTENING_ONLY no connected sockets. */
enum { TCP4 = 1, TCP6 = 2, UNIX = 4, ALL_KINDS = 7, LISTENING_ONLY = 8 };

typedef void see_socket(const struct socket_seen *seen, int kind, void *with);

/* Returns the network namespace of a process, or 0. */
uint64_t space_of(pid_t pid);
/* Makes a socket (`act`) in the namespace of the process; it stays there. Returns -1 if that is not permitted, or the
 * process is gone. */
int space_do(pid_t pid, int (*act)(void *with), void *with);
/* Returns a netlink socket in the namespace of the process, or -1. */
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

/* Calls `see` for each socket that the process has open; examines at most `limit` descriptors. */
void each_socket_of(pid_t pid, int limit, void (*see)(uint32_t inode, int descriptor, void *with), void *with);
/* Adds the inodes of the sockets that the process has open; examines at most `limit` descriptors. */
void sockets_of(pid_t pid, struct numbers *inodes, int limit);

/* ---- who listens on a port: listeners.c ---- */

#define MAX_LISTENERS 256

/* A socket that listens on the port, in the namespace that is examined. */
struct listener { uint32_t inode, ip[4]; int kind; bool is_ours; };
struct listeners { uint32_t port; struct listener list[MAX_LISTENERS]; size_t count; };

/* `ours`: the inodes of the task's sockets. Returns false if the kernel does not answer. */
bool listeners_find(struct listeners *found, int netlink, uint32_t port, const struct numbers *ours);
/* Where to connect: a socket that listens everywhere listens on the loopback address. */
struct listener listener_target(const struct listener *listener);
/* Another process could get the connection: it listens there, or everywhere. */
bool listeners_contest(const struct listeners *found, const struct listener *target);
/* After the connection: its socket listens still, and no other process could have got the connection. */
bool listeners_have(const struct listeners *found, const struct listener *target);
/* Returns a socket in the namespace of the caller whose connection is made or in progress, or -1. */
int listener_connect(uint32_t port, const struct listener *target);

#endif
