/*
 * The connections of a proxy. Bytes go from socket to socket through a pipe and are not looked at (proxy-pipe.c). While the
 * task is out, nothing is passed to it: a new connection is accepted but not made, and the bytes of an open one stay in
 * the kernel, whose window stops the client. What the task sends is passed on always.
 */
#include "proxy.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define DRAIN_ROUNDS 8
#define MAX_REFUSING 64
#define CONNECT_MS 10000
#define REFUSE_MS 2000
#define CLOSED_MS 100      /* a port on which nothing of the task listened is not looked for again */
#define ACCEPTS 64         /* at a time */
#define QUIET_MS 200       /* an answer that ends with its connection has ended before */
#define ANY_BYTES (1 << 30)
#define RETRY_AFTER_S "5"

/* HELD: not connected to the task. REFUSING: it has its answer, and is read until it closes. */
enum stage { HELD, CONNECTING, PASSING, REFUSING, ENDED };

struct connection {
  struct watch client, upstream;
  struct flow in, out; /* to the task, and from it */
  struct requests requests;
  struct port *port;
  struct listener target;
  enum stage stage;
  bool is_waiting; /* counted as held */
  bool is_heard;   /* it has sent something, or ended, since the task is out: nothing new to see */
  bool is_broken;  /* the task has refused its bytes */
  bool is_answered; /* the task has sent something since it got something */
  int64_t deadline, last_out;
  struct connection *next, *previous;
};

static struct connection *first, *last, *ended;

/* ---- the end of a connection ---- */

static int64_t next_due = INT64_MAX;

static void set_deadline(struct connection *connection, int64_t within_ms) {
  connection->deadline = now_boot() + within_ms;
  if (connection->deadline < next_due) next_due = connection->deadline;
}

static void clear_deadline(struct connection *connection) { connection->deadline = 0; }

static void set_waiting(struct connection *connection, bool is_waiting) {
  if (connection->is_waiting == is_waiting) return;
  connection->is_waiting = is_waiting;
  if (is_waiting) proxy.held++;
  else proxy.held--;
}

static void end_connection(struct connection *connection) {
  if (connection->stage == ENDED) return;
  if (connection->stage == REFUSING) proxy.refusing--;
  set_waiting(connection, false);
  watch_end(&connection->client);
  watch_end(&connection->upstream);
  give_pipe(&connection->in);
  give_pipe(&connection->out);
  requests_free(&connection->requests);
  if (connection->previous != NULL) connection->previous->next = connection->next;
  else first = connection->next;
  if (connection->next != NULL) connection->next->previous = connection->previous;
  else last = connection->previous;
  connection->stage = ENDED;
  connection->next = ended;
  ended = connection;
  proxy.open--;
}

void free_ended(void) {
  while (ended != NULL) {
    struct connection *connection = ended;
    ended = connection->next;
    free(connection);
  }
}

/* Both sides learn that it did not end as usual. */
static void abort_connection(struct connection *connection) {
  const struct linger now = {1, 0};
  if (connection->client.fd >= 0) setsockopt(connection->client.fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  if (connection->upstream.fd >= 0) setsockopt(connection->upstream.fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  end_connection(connection);
}

/* The client gets an answer, which it can only read if its request is read first. */
static void answer_client(struct connection *connection, const char *status, const char *fields, const char *why) {
  char text[384];
  if (proxy.refusing >= MAX_REFUSING) return abort_connection(connection);
  int size = snprintf(text, sizeof text, "HTTP/1.1 %s\r\n%sContent-Type: text/plain\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n%s",
    status, fields, strlen(why), why);
  if (send(connection->client.fd, text, (size_t)size, MSG_NOSIGNAL) != size) return abort_connection(connection);
  shutdown(connection->client.fd, SHUT_WR);
  set_waiting(connection, false);
  watch_end(&connection->upstream);
  connection->stage = REFUSING;
  set_deadline(connection, REFUSE_MS);
  proxy.refusing++;
  watch_change(&connection->client, EPOLLIN);
}

/* `why` is for a gateway (services/gateway), which waits until something listens. */
static void refuse_client(struct connection *connection, const char *why) {
  char fields[96];
  bool is_untouched = connection->stage == HELD || connection->stage == CONNECTING;
  if (!connection->port->is_http || !is_untouched) return abort_connection(connection);
  snprintf(fields, sizeof fields, "Retry-After: " RETRY_AFTER_S "\r\nHeadroom-Refusal: %s\r\n", why);
  answer_client(connection, "503 Service Unavailable", fields, "The task cannot answer now. Try again.\n");
}

static void drain(struct connection *connection) {
  char text[16384];
  for (int round = 0; round < DRAIN_ROUNDS; round++) {
    ssize_t size = recv(connection->client.fd, text, sizeof text, 0);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (size <= 0) return end_connection(connection);
  }
}

/* ---- bytes ---- */

/* An end about which epoll tells nothing any more is read whenever the other one can be written. */
static void wait_for_both(struct connection *connection) {
  bool can_pass = !proxy.is_out, is_heard = proxy.is_out && connection->is_heard;
  const struct flow *in = &connection->in, *out = &connection->out;
  bool writes_client = out->size > 0 || (connection->upstream.is_ignored && !out->is_over);
  bool writes_upstream = can_pass && (in->size > 0 || (connection->client.is_ignored && !in->is_over));
  watch_change(&connection->client, (!in->is_over && in->size == 0 && !is_heard ? EPOLLIN : 0) | (writes_client ? EPOLLOUT : 0));
  watch_change(&connection->upstream, (!out->is_over && out->size == 0 ? EPOLLIN : 0) | (writes_upstream ? EPOLLOUT : 0));
}

/* An answer on a connection that has passed requests before could be taken for an answer to those: it only ends, once they
 * are answered. */
static void forbid(struct connection *connection) {
  proxy.forbidden++;
  if (!connection->requests.has_passed)
    return answer_client(connection, status_text(connection->requests.status), "", "This request is not passed to the task.\n");
  connection->in.is_over = true;
  shutdown(connection->upstream.fd, SHUT_WR);
  requests_free(&connection->requests);
}

static enum moved move_in(struct connection *connection) {
  int client = connection->client.fd, upstream = connection->upstream.fd;
  uint64_t before = proxy.bytes_in;
  enum moved moved = connection->port->is_engine ? move_requests(&connection->requests, client, upstream, &proxy.bytes_in)
    : move_bytes(&connection->in, client, upstream, &proxy.bytes_in);
  if (connection->port->is_engine) connection->in.size = moved == BLOCKED ? connection->requests.read : 0;
  if (proxy.bytes_in != before) connection->is_answered = false;
  return moved;
}

/* A request is held of which the task has got nothing, and the task has closed the connection, as servers do with idle ones.
 * What the client has sent has to begin as a request does: it could be the rest of one that was refused early. */
static bool may_connect_again(const struct connection *connection) {
  const struct requests *requests = &connection->requests;
  if (!connection->port->is_http || !connection->is_waiting || !connection->is_answered || connection->in.is_over) return false;
  if (connection->in.size > 0 || connection->out.size > 0 || now_boot() - connection->last_out < QUIET_MS) return false;
  if (requests->part != HEAD || requests->read > 0) return false;
  return requests->size > 0 || begins_request(connection->client.fd);
}

/* It is connected to the task when the task is back. */
static void hold_again(struct connection *connection) {
  watch_end(&connection->upstream);
  connection->upstream = (struct watch){.kind = ON_END, .fd = -1, .of = connection};
  give_pipe(&connection->out);
  connection->stage = HELD;
  watch_change(&connection->client, 0);
}

static void pass_in(struct connection *connection) {
  struct flow *in = &connection->in;
  if (in->is_over) return;
  enum moved moved = move_in(connection);
  if (moved == UNREADABLE) return abort_connection(connection);
  if (moved == REFUSED) return forbid(connection);
  if (moved != OVER && moved != UNWRITABLE) return;
  in->is_over = true;
  /* What the task has answered before it closed is passed on. */
  if (moved == UNWRITABLE) connection->is_broken = true;
  else shutdown(connection->upstream.fd, SHUT_WR);
  give_pipe(in);
  in->size = 0;
}

static void pass_out(struct connection *connection) {
  struct flow *out = &connection->out;
  if (out->is_over) return;
  uint64_t before = proxy.bytes_out;
  enum moved moved = move_bytes(out, connection->upstream.fd, connection->client.fd, &proxy.bytes_out);
  if (proxy.bytes_out != before) {
    connection->is_answered = true;
    connection->last_out = now_boot();
  }
  if ((moved == OVER || moved == UNREADABLE) && may_connect_again(connection)) return hold_again(connection);
  if (moved == UNREADABLE || moved == UNWRITABLE) return abort_connection(connection);
  if (moved != OVER) return;
  out->is_over = true;
  shutdown(connection->client.fd, SHUT_WR);
}

static void end_if_over(struct connection *connection) {
  if (connection->stage != PASSING) return;
  if (!connection->in.is_over || !connection->out.is_over) wait_for_both(connection);
  else if (connection->is_broken) abort_connection(connection);
  else end_connection(connection);
}

/* ---- requests that are held ---- */

static void hold(struct connection *connection) {
  if (connection->is_waiting) return;
  if (proxy.held >= proxy.max_held) {
    proxy.refused++;
    return refuse_client(connection, "full");
  }
  set_waiting(connection, true);
  set_deadline(connection, proxy.hold_ms);
}

/* The client has sent something while the task is out, or has ended its side. */
static void hear_held(struct connection *connection) {
  char byte;
  ssize_t size = recv(connection->client.fd, &byte, 1, MSG_PEEK);
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
  bool is_over = size == 0 && connection->in.size == 0;
  if (size < 0 || (is_over && connection->stage == HELD && connection->port->is_http)) return end_connection(connection);
  connection->is_heard = true;
  if (is_over && connection->stage == PASSING) {
    /* Nothing of a request: the task may learn that its client has gone. */
    connection->in.is_over = true;
    shutdown(connection->upstream.fd, SHUT_WR);
    return end_if_over(connection);
  }
  hold(connection);
  if (connection->stage == HELD) watch_change(&connection->client, 0);
  else if (connection->stage == PASSING) wait_for_both(connection);
  if (connection->is_waiting) say_wanted();
}

/* ---- connections to the task ---- */

static void deny(struct connection *connection) {
  proxy.denied++;
  refuse_client(connection, "not-listening");
}

static void connect_to_task(struct connection *connection) {
  struct port *port = connection->port;
  set_waiting(connection, false);
  if (now_boot() < port->closed_until) return deny(connection);
  connection->upstream.fd = task_connect(port->target, &connection->target);
  if (connection->upstream.fd < 0) {
    port->closed_until = now_boot() + CLOSED_MS;
    return deny(connection);
  }
  connection->stage = CONNECTING;
  set_deadline(connection, CONNECT_MS);
  watch_change(&connection->client, 0);
  watch_begin(&connection->upstream, EPOLLOUT);
}

static void connected(struct connection *connection) {
  int error = 0, on = 1;
  socklen_t size = sizeof error;
  bool is_made = getsockopt(connection->upstream.fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0;
  if (!is_made || !task_connected(connection->port->target, &connection->target)) return deny(connection);
  setsockopt(connection->upstream.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (proxy.is_out) set_window(connection->client.fd, HELD_BYTES);
  connection->stage = PASSING;
  connection->is_heard = false;
  clear_deadline(connection);
  wait_for_both(connection);
}

static void add_connection(struct port *port, int client) {
  int on = 1;
  struct connection *connection = calloc(1, sizeof *connection);
  if (connection == NULL) abort();
  setsockopt(client, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  *connection = (struct connection){.client = {.kind = ON_END, .fd = client, .of = connection},
    .upstream = {.kind = ON_END, .fd = -1, .of = connection}, .in = {.pipe = {-1, -1}}, .out = {.pipe = {-1, -1}}, .port = port,
    .previous = last};
  if (last != NULL) last->next = connection;
  else first = connection;
  last = connection;
  proxy.open++;
  proxy.accepted++;
  watch_begin(&connection->client, 0);
  if (proxy.open > proxy.max_open) {
    proxy.refused++;
    return refuse_client(connection, "full");
  }
  if (!proxy.is_out) return connect_to_task(connection);
  hold(connection);
  if (connection->stage != HELD) return;
  /* Of a client of HTTP the first byte is awaited: a look at the port is no request. */
  if (port->is_http) watch_change(&connection->client, EPOLLIN);
  else say_wanted();
}

void accept_clients(struct port *port) {
  for (int count = 0; count < ACCEPTS; count++) {
    int client = accept4(port->listen.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (client >= 0) add_connection(port, client);
    else if (errno == EAGAIN) return;
    else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      port->is_full = true;
      return watch_change(&port->listen, 0);
    }
  }
}

/* ---- events ---- */

static void on_passing(struct connection *connection, bool is_client, uint32_t events) {
  int error = 0;
  socklen_t size = sizeof error;
  bool is_gone = (events & (EPOLLERR | EPOLLHUP)) != 0;
  if (is_client && (events & EPOLLERR) != 0) {
    if (getsockopt(connection->client.fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error != 0) return abort_connection(connection);
  }
  if (is_client && proxy.is_out && (events & EPOLLIN) != 0) hear_held(connection);
  if (connection->stage == PASSING && !proxy.is_out && (events & (is_client ? EPOLLIN : EPOLLOUT)) != 0) pass_in(connection);
  if (connection->stage == PASSING && ((events & (is_client ? EPOLLOUT : EPOLLIN)) != 0 || (!is_client && is_gone))) pass_out(connection);
  if (connection->stage == PASSING && is_gone) watch_ignore(is_client ? &connection->client : &connection->upstream);
  end_if_over(connection);
}

void on_end(struct watch *watch, uint32_t events) {
  struct connection *connection = watch->of;
  bool is_client = watch == &connection->client, is_gone = (events & (EPOLLERR | EPOLLHUP)) != 0;
  switch (connection->stage) {
    case HELD: return is_gone ? end_connection(connection) : hear_held(connection);
    case CONNECTING: return !is_client ? connected(connection) : is_gone ? abort_connection(connection) : (void)0;
    case PASSING: return on_passing(connection, is_client, events);
    case REFUSING: return drain(connection);
    case ENDED: return;
  }
}

static void pass_held(struct connection *connection) {
  if (connection->stage == PASSING && has_ended(connection->upstream.fd) && may_connect_again(connection)) hold_again(connection);
  if (connection->stage == HELD) return connect_to_task(connection);
  if (connection->stage != PASSING) return;
  set_waiting(connection, false);
  clear_deadline(connection);
  set_window(connection->client.fd, ANY_BYTES);
  pass_in(connection);
  end_if_over(connection);
}

static void hold_open(struct connection *connection) {
  if (connection->stage != PASSING) return;
  connection->is_heard = false;
  set_window(connection->client.fd, HELD_BYTES);
  if (connection->in.size > 0 || connection->requests.size > 0) {
    hold(connection);
    if (connection->stage == PASSING) say_wanted();
  }
  if (connection->stage == PASSING) wait_for_both(connection);
}

void hold_or_pass(bool out) {
  if (proxy.is_out == out) return;
  proxy.is_out = out;
  for (size_t i = 0; i < proxy.port_count; i++) proxy.ports[i].closed_until = 0;
  for (struct connection *connection = first, *next; connection != NULL; connection = next) {
    next = connection->next;
    if (out) hold_open(connection);
    else pass_held(connection);
  }
}

static void end_late(struct connection *connection) {
  if (connection->stage == CONNECTING) return deny(connection);
  if (connection->stage == REFUSING) return end_connection(connection);
  proxy.expired++;
  refuse_client(connection, "late");
}

int end_overdue(void) {
  int64_t now = now_boot();
  if (now >= next_due) {
    next_due = INT64_MAX;
    for (struct connection *connection = first, *next; connection != NULL; connection = next) {
      next = connection->next;
      if (connection->deadline != 0 && now >= connection->deadline) end_late(connection);
      else if (connection->deadline != 0 && connection->deadline < next_due) next_due = connection->deadline;
    }
  }
  return next_due == INT64_MAX ? -1 : next_due <= now ? 0 : (int)(next_due - now);
}
