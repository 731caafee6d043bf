/* Asks the kernel about sockets (sock_diag(7)), in other network namespaces too. /proc/net/tcp gives the same
 * answers, but costs some milliseconds for each look: the kernel walks its whole table for each chunk. */
#include "sockets.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define ANSWER_BYTES 65536

/* ---- sorted numbers ---- */

void numbers_add(struct numbers *numbers, uint32_t number) {
  if (numbers->count == numbers->room) {
    numbers->room = numbers->room == 0 ? 64 : numbers->room * 2;
    numbers->list = realloc(numbers->list, numbers->room * sizeof *numbers->list);
    if (numbers->list == NULL) abort();
  }
  numbers->list[numbers->count++] = number;
}

static int by_number(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return x < y ? -1 : x > y;
}

void numbers_sort(struct numbers *numbers) {
  size_t kept = 0;
  if (numbers->count > 0) qsort(numbers->list, numbers->count, sizeof *numbers->list, by_number);
  for (size_t i = 0; i < numbers->count; i++)
    if (kept == 0 || numbers->list[i] != numbers->list[kept - 1]) numbers->list[kept++] = numbers->list[i];
  numbers->count = kept;
}

bool numbers_have(const struct numbers *numbers, uint32_t number) {
  return numbers->count > 0 && bsearch(&number, numbers->list, numbers->count, sizeof number, by_number) != NULL;
}

/* ---- of a process ---- */

void each_socket_of(pid_t pid, int limit, void (*see)(uint32_t inode, int descriptor, void *with), void *with) {
  char path[64], target[64];
  snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
  DIR *folder = opendir(path);
  if (folder == NULL) return;
  for (struct dirent *entry; limit > 0 && (entry = readdir(folder)) != NULL; limit--) {
    ssize_t size = readlinkat(dirfd(folder), entry->d_name, target, sizeof target - 1);
    unsigned inode;
    if (size <= 0) continue;
    target[size] = 0;
    if (sscanf(target, "socket:[%u]", &inode) == 1) see(inode, atoi(entry->d_name), with);
  }
  closedir(folder);
}

static void add_socket(uint32_t inode, int descriptor, void *with) {
  (void)descriptor;
  numbers_add(with, inode);
}

void sockets_of(pid_t pid, struct numbers *inodes, int limit) { each_socket_of(pid, limit, add_socket, inodes); }

uint64_t space_of(pid_t pid) {
  char path[64];
  struct stat about;
  snprintf(path, sizeof path, "/proc/%d/ns/net", (int)pid);
  return stat(path, &about) == 0 ? about.st_ino : 0;
}

static int open_netlink(void *with) {
  (void)with;
  struct timeval limit = {1, 0};
  int netlink = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
  if (netlink >= 0) setsockopt(netlink, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  return netlink;
}

/* A process that cannot return would act in the wrong one: it ends. */
int space_do(pid_t pid, int (*act)(void *with), void *with) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/ns/net", (int)pid);
  if (space_of(pid) == space_of(getpid())) return act(with);
  int theirs = open(path, O_RDONLY | O_CLOEXEC), ours = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC), made = -1;
  if (theirs >= 0 && ours >= 0 && setns(theirs, CLONE_NEWNET) == 0) {
    made = act(with);
    if (setns(ours, CLONE_NEWNET) != 0) abort();
  }
  if (ours >= 0) close(ours);
  if (theirs >= 0) close(theirs);
  return made;
}

int space_open(pid_t pid) { return space_do(pid, open_netlink, NULL); }

/* ---- one look ---- */

static const uint32_t *seen_ip;

const uint32_t *socket_ip(void) { return seen_ip; }

static void see_inet(const struct nlmsghdr *message, int kind, see_socket *see, void *with) {
  const struct inet_diag_msg *about = NLMSG_DATA(message);
  if (message->nlmsg_len < NLMSG_LENGTH(sizeof *about)) return;
  bool is_listening = about->idiag_state == TCP_LISTEN;
  /* The end of the stream counts as one unread byte. */
  uint32_t end = about->idiag_state == TCP_CLOSE_WAIT && about->idiag_rqueue > 0;
  struct socket_seen seen = {about->idiag_inode, about->idiag_rqueue - end, is_listening ? about->idiag_wqueue : 0,
    ntohs(about->id.idiag_sport), is_listening};
  seen_ip = about->id.idiag_src;
  see(&seen, kind, with);
}

static uint32_t number_of(const unsigned char *name, size_t size) {
  uint32_t hash = 2166136261u; /* FNV-1a */
  for (size_t i = 0; i < size; i++) hash = (hash ^ name[i]) * 16777619u;
  return hash | IS_NAME;
}

static void see_unix(const struct nlmsghdr *message, see_socket *see, void *with) {
  const struct unix_diag_msg *about = NLMSG_DATA(message);
  if (message->nlmsg_len < NLMSG_LENGTH(sizeof *about)) return;
  struct socket_seen seen = {about->udiag_ino, 0, 0, 0, about->udiag_state == TCP_LISTEN};
  size_t left = message->nlmsg_len - NLMSG_LENGTH(sizeof *about);
  const struct nlattr *at = (const struct nlattr *)((const char *)about + NLMSG_ALIGN(sizeof *about));
  while (left >= NLA_HDRLEN && at->nla_len >= NLA_HDRLEN && at->nla_len <= left) {
    const unsigned char *value = (const unsigned char *)at + NLA_HDRLEN;
    if (at->nla_type == UNIX_DIAG_NAME) seen.address = number_of(value, at->nla_len - NLA_HDRLEN);
    if (at->nla_type == UNIX_DIAG_RQLEN && at->nla_len >= NLA_HDRLEN + sizeof(struct unix_diag_rqlen)) {
      const struct unix_diag_rqlen *queue = (const struct unix_diag_rqlen *)value;
      seen.waiting = queue->udiag_rqueue;
      seen.room = seen.is_listening ? queue->udiag_wqueue : 0;
    }
    size_t step = NLA_ALIGN(at->nla_len);
    if (step >= left) break;
    left -= step;
    at = (const struct nlattr *)((const char *)at + step);
  }
  see(&seen, UNIX, with);
}

static bool request(int netlink, int kind, uint32_t number, uint32_t states) {
  struct {
    struct nlmsghdr header;
    union { struct inet_diag_req_v2 inet; struct unix_diag_req local; } of;
  } ask = {.header = {.nlmsg_type = SOCK_DIAG_BY_FAMILY, .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP, .nlmsg_seq = number}};
  if (kind == UNIX) {
    ask.of.local.sdiag_family = AF_UNIX;
    ask.of.local.udiag_states = states;
    ask.of.local.udiag_show = UDIAG_SHOW_NAME | UDIAG_SHOW_RQLEN;
    ask.header.nlmsg_len = NLMSG_LENGTH(sizeof ask.of.local);
  } else {
    ask.of.inet.sdiag_family = kind == TCP4 ? AF_INET : AF_INET6;
    ask.of.inet.sdiag_protocol = IPPROTO_TCP;
    ask.of.inet.idiag_states = states;
    ask.header.nlmsg_len = NLMSG_LENGTH(sizeof ask.of.inet);
  }
  return send(netlink, &ask, ask.header.nlmsg_len, 0) == (ssize_t)ask.header.nlmsg_len;
}

static bool look_for(int netlink, int kind, uint32_t states, see_socket *see, void *with) {
  static _Alignas(8) char answer[ANSWER_BYTES];
  static uint32_t number;
  if (!request(netlink, kind, ++number, states)) return false;
  for (;;) {
    ssize_t size = recv(netlink, answer, sizeof answer, 0);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return false;
    for (struct nlmsghdr *at = (struct nlmsghdr *)answer; NLMSG_OK(at, size); at = NLMSG_NEXT(at, size)) {
      if (at->nlmsg_seq != number) continue; /* of an earlier request */
      if (at->nlmsg_type == NLMSG_DONE) return true;
      if (at->nlmsg_type == NLMSG_ERROR) return false;
      if (kind == UNIX) see_unix(at, see, with);
      else see_inet(at, kind, see, with);
    }
  }
}

/* A kernel may lack one kind (IPv6): that one has no sockets. */
bool space_look(int netlink, int kinds, see_socket *see, void *with) {
  bool has_answer = false;
  uint32_t states = 1u << TCP_LISTEN;
  if ((kinds & LISTENING_ONLY) == 0) states |= 1u << TCP_ESTABLISHED | 1u << TCP_CLOSE_WAIT;
  for (int kind = TCP4; kind <= UNIX; kind <<= 1)
    if ((kinds & kind) != 0 && look_for(netlink, kind, states, see, with)) has_answer = true;
  return has_answer;
}
