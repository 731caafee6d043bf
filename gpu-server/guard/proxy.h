/* What the files of the forwarding proxy of one attempt share (`headroom-guard --proxy`, docs/decisions/0125). */
#ifndef HEADROOM_PROXY_H
#define HEADROOM_PROXY_H

#include "sockets.h"

#define HELD_BYTES (64 << 10) /* of each held connection */
#define PROXY_PORTS 16 /* of a task: protocol/limits.ts */

/* ---- one event loop: proxy.c ---- */

/* What epoll reports about. `events` are those that it waits for. */
enum watched { ON_PORT, ON_CONTROL, ON_SERVER, ON_END, ON_TASK };
struct watch { enum watched kind; int fd; uint32_t events; bool is_ignored; void *of; };

void watch_begin(struct watch *watch, uint32_t events);
void watch_change(struct watch *watch, uint32_t events);
/* Its file stays open, and epoll tells nothing about it any more, not even that it has ended. */
void watch_ignore(struct watch *watch);
/* Closes the file. */
void watch_end(struct watch *watch);

/* A declared port: what listens for clients, and the port of the task. */
struct port { struct watch listen; uint32_t port, target; bool is_http, is_engine, is_full; int64_t closed_until; };

struct proxy {
  int epoll;
  const char *address; /* at which it listens */
  struct port ports[PROXY_PORTS];
  size_t port_count;
  bool is_out;      /* the task cannot answer: requests are held */
  bool is_ending;
  int64_t hold_ms;  /* a request is held no longer than that */
  size_t max_held, max_open;
  /* `held`: connections whose request waits, or that are not connected to the task yet because it is out. */
  size_t open, held, refusing;
  /* `refused`: above a limit. `expired`: held for too long. `denied`: no socket of the task listens there. */
  /* `forbidden`: requests that may not pass to an engine. */
  uint64_t accepted, refused, expired, denied, forbidden, bytes_in, bytes_out;
};
extern struct proxy proxy;

/* ---- connections: proxy-flow.c ---- */

void accept_clients(struct port *port);
void on_end(struct watch *watch, uint32_t events);
/* `out`: from now on requests are held; else those that are held are passed on, the oldest first. */
void hold_or_pass(bool out);
/* Ends what has waited for too long. Returns the milliseconds until the next call, or -1. */
int end_overdue(void);
/* Frees what has ended; nothing in the current batch of events may refer to it any more. */
void free_ended(void);

/* ---- bytes: proxy-pipe.c ---- */

/* One direction of a connection. `size`: bytes in the pipe. */
struct flow { int pipe[2]; size_t size; bool is_over; };
/* MORE: others have their turn first. REFUSED: a request may not pass. */
enum moved { IDLE, MORE, BLOCKED, OVER, UNREADABLE, UNWRITABLE, REFUSED };

/* Passes bytes on until there are none, the receiver is full, or others have their turn. Counts them. */
enum moved move_bytes(struct flow *flow, int from, int to, uint64_t *count);
void give_pipe(struct flow *flow);
/* The other side has closed the connection, and all its bytes were read. */
bool has_ended(int socket);
/* What a client may send at once. It was told so, and may send that; it is told no more. */
void set_window(int client, int bytes);

/* ---- requests to an engine: proxy-http.c ---- */

/* The part of a request that is read next. */
enum part { HEAD, BODY, CHUNK_SIZE, CHUNK, CHUNK_END, LAST };
/* `read`: bytes of the buffer that may be sent, of `size` that have arrived. `left`: bytes of the part. `status`: of the
 * answer to a request that may not pass, or 0. `has_passed`: the engine has got something. */
struct requests {
  enum part part;
  char *buffer;
  size_t size, read;
  uint64_t left;
  int status;
  bool is_old, has_length, is_chunked, has_passed;
};
/* As move_bytes. When it returns REFUSED, the engine has got everything before the request, and nothing of it. */
enum moved move_requests(struct requests *requests, int from, int to, uint64_t *count);
void requests_free(struct requests *requests);
/* What the client has sent, and was not read, begins with a request line of HTTP/1. */
bool begins_request(int client);
const char *status_text(int status);

/* ---- the task's own sockets: proxy-task.c ---- */

/* Reads who is the task from the folder of its guard, which is the current folder. Returns a file that becomes
 * readable when the task is over, or -1. */
int task_find(void);
/* Begins a connection to the socket of the task that listens on the port. Returns -1 if none does, or if another
 * process could get the connection. */
int task_connect(uint32_t port, struct listener *target);
/* The connection is made: the same socket of the task listens still, and no other could have got it. */
bool task_connected(uint32_t port, const struct listener *target);

/* ---- orders of the server: proxy-control.c ---- */

/* Listens on the socket `proxy` in the current folder. Returns why not, or NULL. */
const char *control_open(void);
void control_accept(struct watch *listen);
void control_hear(struct watch *watch);
/* Tells the server that a request is held. */
void say_wanted(void);

#endif
