/*
 * The load of `make bench-proxy`: a server, and clients of it, that cost less than what is between them.
 *
 *   serve PORT                          `d`: reads to the end, then closes. `u` and 8 bytes: sends as many bytes as these
 *                                       name. `e`: returns each message of MESSAGE bytes.
 *   upload|download PORT MIB COUNT      moves MIB over COUNT connections; prints MiB/s.
 *   latency kept|new PORT COUNT TOTAL   TOTAL requests over COUNT connections at a time, which are kept or opened for
 *                                       each request; prints the 50th and 99th percentile in microseconds.
 *   hold PORT COUNT                     opens COUNT connections, each with 1,000 bytes; prints `held`; ends with its input.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MESSAGE 100
#define CHUNK (256 << 10)
#define MAX_CONNECTIONS 4096

/* `left`: bytes that it still has to send. */
struct connection { int fd; char kind; size_t got; uint64_t left, began; char text[MESSAGE]; };

static char chunk[CHUNK];
static struct sockaddr_in address = {.sin_family = AF_INET};
static struct connection connections[MAX_CONNECTIONS];

static _Noreturn void fail(const char *what) {
  perror(what);
  exit(1);
}

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void watch(int epoll, struct connection *connection, int how, uint32_t events) {
  struct epoll_event event = {.events = events, .data.ptr = connection};
  if (epoll_ctl(epoll, how, connection->fd, &event) != 0) fail("epoll");
}

/* ---- the server ---- */

static void end(struct connection *connection) {
  close(connection->fd);
  free(connection);
}

static void send_more(int epoll, struct connection *connection) {
  while (connection->left > 0) {
    ssize_t size = send(connection->fd, chunk, connection->left < CHUNK ? connection->left : CHUNK, MSG_NOSIGNAL);
    if (size < 0 && errno == EAGAIN) return watch(epoll, connection, EPOLL_CTL_MOD, EPOLLOUT);
    if (size <= 0) return end(connection);
    connection->left -= (uint64_t)size;
  }
  end(connection);
}

static void echo(struct connection *connection) {
  for (;;) {
    ssize_t size = recv(connection->fd, connection->text + connection->got, MESSAGE - connection->got, 0);
    if (size < 0 && errno == EAGAIN) return;
    if (size <= 0) return end(connection);
    connection->got += (size_t)size;
    if (connection->got < MESSAGE) continue;
    connection->got = 0;
    if (send(connection->fd, connection->text, MESSAGE, MSG_NOSIGNAL) != MESSAGE) return end(connection);
  }
}

/* MSG_TRUNC: the kernel drops the bytes instead of copying them. */
static void discard(struct connection *connection) {
  for (;;) {
    ssize_t size = recv(connection->fd, chunk, 16 << 20, MSG_TRUNC);
    if (size < 0 && errno == EAGAIN) return;
    if (size <= 0) return end(connection);
  }
}

static void serve_one(int epoll, struct connection *connection) {
  if (connection->kind == 0) {
    ssize_t size = recv(connection->fd, &connection->kind, 1, 0);
    if (size < 0 && errno == EAGAIN) return;
    if (size <= 0) return end(connection);
  }
  if (connection->kind == 'e') return echo(connection);
  if (connection->kind == 'd') return discard(connection);
  if (connection->left == 0 && recv(connection->fd, &connection->left, 8, 0) != 8) return end(connection);
  send_more(epoll, connection);
}

static void serve(void) {
  int on = 1, epoll = epoll_create1(0), listening = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  setsockopt(listening, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(listening, (struct sockaddr *)&address, sizeof address) != 0 || listen(listening, 4096) != 0) fail("listen");
  struct epoll_event event = {.events = EPOLLIN}, events[64];
  epoll_ctl(epoll, EPOLL_CTL_ADD, listening, &event);
  printf("listening\n");
  fflush(stdout);
  for (;;) {
    int count = epoll_wait(epoll, events, 64, -1);
    for (int i = 0; i < count; i++) {
      if (events[i].data.ptr != NULL) {
        serve_one(epoll, events[i].data.ptr);
        continue;
      }
      int fd = accept4(listening, NULL, NULL, SOCK_NONBLOCK);
      if (fd < 0) continue;
      setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      struct connection *made = calloc(1, sizeof *made);
      if (made == NULL) abort();
      made->fd = fd;
      watch(epoll, made, EPOLL_CTL_ADD, EPOLLIN);
    }
  }
}

/* ---- the clients ---- */

static int dial(void) {
  int on = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
  if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) != 0) fail("connect");
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return fd;
}

static void say(int fd, const void *bytes, size_t size) {
  if (send(fd, bytes, size, MSG_NOSIGNAL) != (ssize_t)size) fail("send");
}

/* Returns false when the connection is over. */
static int move(struct connection *connection, int is_upload) {
  ssize_t size;
  if (!is_upload || connection->left == 0) size = recv(connection->fd, chunk, 16 << 20, MSG_TRUNC | MSG_DONTWAIT);
  else size = send(connection->fd, chunk, connection->left < CHUNK ? connection->left : CHUNK, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (size < 0 && errno == EAGAIN) return 1;
  if (size < 0) fail("move");
  if (!is_upload) connection->left -= (uint64_t)size;
  else if (connection->left > 0 && (connection->left -= (uint64_t)size) == 0) shutdown(connection->fd, SHUT_WR);
  return size > 0;
}

static void bandwidth(int is_upload, uint64_t mib, int count) {
  int epoll = epoll_create1(0), open = count;
  uint64_t began = now_ns(), each = (mib << 20) / (uint64_t)count;
  for (int i = 0; i < count; i++) {
    connections[i] = (struct connection){.fd = dial(), .left = each};
    char how[9] = {is_upload ? 'd' : 'u'};
    memcpy(how + 1, &each, 8);
    say(connections[i].fd, how, is_upload ? 1 : 9);
    watch(epoll, &connections[i], EPOLL_CTL_ADD, is_upload ? EPOLLOUT : EPOLLIN);
  }
  while (open > 0) {
    struct epoll_event events[64];
    int ready = epoll_wait(epoll, events, 64, -1);
    for (int i = 0; i < ready; i++) {
      struct connection *connection = events[i].data.ptr;
      if (move(connection, is_upload)) {
        if (is_upload && connection->left == 0) watch(epoll, connection, EPOLL_CTL_MOD, EPOLLIN);
        continue;
      }
      if (connection->left != 0) fail("it ended early");
      close(connection->fd);
      open--;
    }
  }
  printf("%.1f\n", (double)(each * (uint64_t)count) / 1048576.0 / ((double)(now_ns() - began) / 1e9));
}

static int by_number(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return x < y ? -1 : x > y;
}

static void begin_request(int epoll, struct connection *connection, int is_new) {
  connection->began = now_ns();
  connection->got = 0;
  if (is_new || connection->fd < 0) {
    connection->fd = dial();
    say(connection->fd, "e", 1);
    watch(epoll, connection, EPOLL_CTL_ADD, EPOLLIN);
  }
  say(connection->fd, connection->text, MESSAGE);
}

static void latency(int is_new, int count, int total) {
  int epoll = epoll_create1(0), begun = 0, done = 0;
  uint64_t *took = calloc((size_t)total, sizeof *took);
  if (took == NULL) abort();
  for (; begun < count; begun++) {
    connections[begun].fd = -1;
    begin_request(epoll, &connections[begun], is_new);
  }
  while (done < total) {
    struct epoll_event events[64];
    int ready = epoll_wait(epoll, events, 64, -1);
    for (int i = 0; i < ready && done < total; i++) {
      struct connection *connection = events[i].data.ptr;
      ssize_t size = recv(connection->fd, connection->text, MESSAGE - connection->got, 0);
      if (size <= 0) fail("answer");
      if ((connection->got += (size_t)size) < MESSAGE) continue;
      took[done++] = now_ns() - connection->began;
      if (is_new) close(connection->fd);
      if (begun++ < total) begin_request(epoll, connection, is_new);
    }
  }
  qsort(took, (size_t)total, sizeof *took, by_number);
  printf("%.1f %.1f\n", (double)took[total / 2] / 1000.0, (double)took[(size_t)total * 99 / 100] / 1000.0);
}

static void hold(int count) {
  char end;
  for (int i = 0; i < count; i++) {
    int fd = dial();
    for (int part = 0; part < 10; part++) say(fd, chunk, MESSAGE);
  }
  printf("held\n");
  fflush(stdout);
  while (read(0, &end, 1) > 0) {}
}

int main(int count, char **argv) {
  struct rlimit files;
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  signal(SIGPIPE, SIG_IGN);
  inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
  if (count < 3) return 2;
  int is_latency = strcmp(argv[1], "latency") == 0;
  address.sin_port = htons((uint16_t)atoi(argv[is_latency ? 3 : 2]));
  if (strcmp(argv[1], "serve") == 0) serve();
  if (strcmp(argv[1], "hold") == 0 && count == 4) hold(atoi(argv[3]));
  else if (is_latency && count == 6) latency(strcmp(argv[2], "new") == 0, atoi(argv[4]), atoi(argv[5]));
  else if (count == 5) bandwidth(strcmp(argv[1], "upload") == 0, (uint64_t)atol(argv[3]), atoi(argv[4]));
  else return 2;
  return 0;
}
