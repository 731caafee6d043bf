/*
 * What the server says to the proxy of an attempt, on the Unix socket `proxy` in the folder of its guard. One command per
 * line, one answer per line:
 *
 *   hold    the task is out: requests wait from now on.          `ok`
 *   pass    the task is back: requests are passed to it.         `ok`
 *   stat    its ports and counts.                                `ok state=… held=… … ports=PORT:TARGET/PROTOCOL,…`
 *   forget  ends the proxy, with all connections.                `ok`
 *
 * Other lines are answered `error …`. `event wanted` is said when a request is held and none was before; who connects
 * later asks for the counts.
 */
#include "proxy.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define SERVERS 4
#define LINE_BYTES 128
#define ANSWER_BYTES 1024

struct server { struct watch watch; size_t size; char line[LINE_BYTES]; };

static struct server servers[SERVERS] = {{.watch.fd = -1}, {.watch.fd = -1}, {.watch.fd = -1}, {.watch.fd = -1}};
static struct watch listen_watch = {.kind = ON_CONTROL, .fd = -1};
static bool has_said_wanted;

/* A server that does not read is dropped; the proxy never waits for it. */
static void say(struct server *server, const char *text) {
  size_t size = strlen(text);
  if (server->watch.fd >= 0 && send(server->watch.fd, text, size, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)size) watch_end(&server->watch);
}

void say_wanted(void) {
  if (has_said_wanted) return;
  has_said_wanted = true;
  for (size_t i = 0; i < SERVERS; i++) say(&servers[i], "event wanted\n");
}

static void say_counts(struct server *server) {
  char text[ANSWER_BYTES];
  int size = snprintf(text, sizeof text,
    "ok state=%s wanted=%d held=%zu open=%zu accepted=%" PRIu64 " refused=%" PRIu64 " expired=%" PRIu64 " denied=%" PRIu64 " forbidden=%" PRIu64
    " in=%" PRIu64 " out=%" PRIu64 " address=%s ports=", proxy.is_out ? "hold" : "pass", has_said_wanted, proxy.held, proxy.open, proxy.accepted,
    proxy.refused, proxy.expired, proxy.denied, proxy.forbidden, proxy.bytes_in, proxy.bytes_out, proxy.address);
  for (size_t i = 0; i < proxy.port_count; i++) {
    const struct port *port = &proxy.ports[i];
    size += snprintf(text + size, sizeof text - (size_t)size, "%s%u:%u/%s", i == 0 ? "" : ",", port->port, port->target,
      port->is_engine ? "engine" : port->is_http ? "http" : "tcp");
  }
  strcpy(text + size, "\n");
  say(server, text);
}

static void obey(struct server *server, const char *line) {
  bool is_hold = strcmp(line, "hold") == 0;
  if (is_hold || strcmp(line, "pass") == 0) {
    if (proxy.is_out != is_hold) has_said_wanted = false;
    say(server, "ok\n");
    hold_or_pass(is_hold);
  } else if (strcmp(line, "stat") == 0) say_counts(server);
  else if (strcmp(line, "forget") == 0) {
    say(server, "ok\n");
    proxy.is_ending = true;
  } else say(server, "error unknown command\n");
}

void control_hear(struct watch *watch) {
  struct server *server = watch->of;
  ssize_t n = recv(watch->fd, server->line + server->size, sizeof server->line - server->size, MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n <= 0) return watch_end(watch);
  server->size += (size_t)n;
  char *from = server->line, *end;
  while (watch->fd >= 0 && (end = memchr(from, '\n', server->size - (size_t)(from - server->line))) != NULL) {
    *end = 0;
    obey(server, strlen(from) == (size_t)(end - from) ? from : "");
    from = end + 1;
  }
  server->size -= (size_t)(from - server->line);
  memmove(server->line, from, server->size);
  if (server->size < sizeof server->line) return;
  say(server, "error the line is too long\n");
  watch_end(watch);
}

void control_accept(struct watch *listen) {
  int client = accept4(listen->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (client < 0) return;
  for (size_t i = 0; i < SERVERS; i++) {
    if (servers[i].watch.fd >= 0) continue;
    servers[i] = (struct server){.watch = {.kind = ON_SERVER, .fd = client, .of = &servers[i]}};
    return watch_begin(&servers[i].watch, EPOLLIN);
  }
  close(client);
}

const char *control_open(void) {
  struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "proxy"};
  int test = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (test < 0) return strerror(errno);
  bool is_running = connect(test, (struct sockaddr *)&address, sizeof address) == 0;
  close(test);
  if (is_running) return "another one runs";
  unlink(address.sun_path); /* of one that was killed */
  mode_t mask = umask(0177);
  listen_watch.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  bool is_open = listen_watch.fd >= 0 && bind(listen_watch.fd, (struct sockaddr *)&address, sizeof address) == 0 && listen(listen_watch.fd, SERVERS) == 0;
  umask(mask);
  if (!is_open) return strerror(errno);
  watch_begin(&listen_watch, EPOLLIN);
  return NULL;
}
