/*
 * Passes bytes between a client and a task (`headroom exec`, `headroom port-forward`). The server of the task
 * speaks for the client, over standard input and output: frames of a kind, the size of the content in four bytes
 * (most significant first), and the content. protocol/channel-frames.ts describes them. At most one frame waits in
 * each direction: who does not read is not read from.
 */
#include "guard.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define HEAD_BYTES 5
#define MAX_CONTENT (64u << 10)
#define PIECE_BYTES (32u << 10)
#define TEXT_BYTES 512
/* After the end of the command its streams end too, because nothing of it is left. */
#define DRAIN_MS 5000

enum { DATA = 0, ERRORS = 1, END = 2, WINDOW = 3, ENDED = 4, OPENED = 5, REQUEST = 6 };

static unsigned char received[HEAD_BYTES + MAX_CONTENT], outgoing[HEAD_BYTES + PIECE_BYTES];
static size_t received_size, written, outgoing_size, sent;

/* ---- frames ---- */

static uint32_t content_size(void) {
  uint32_t size;
  memcpy(&size, received + 1, sizeof size);
  return ntohl(size);
}

static bool has_frame(void) { return received_size >= HEAD_BYTES && received_size >= HEAD_BYTES + content_size(); }

/* The server checks frames before it passes them on: a bad one is its fault. */
static void receive(void) {
  ssize_t n = read(0, received + received_size, sizeof received - received_size);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n <= 0) exit(0);
  received_size += (size_t)n;
  if (received_size >= HEAD_BYTES && content_size() > MAX_CONTENT) exit(2);
}

static void drop_frame(void) {
  size_t size = HEAD_BYTES + content_size();
  received_size -= size;
  written = 0;
  memmove(received, received + size, received_size);
}

static void flush_outgoing(void) {
  ssize_t n = write(1, outgoing + sent, outgoing_size - sent);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n < 0) exit(0);
  sent += (size_t)n;
  if (sent == outgoing_size) outgoing_size = sent = 0;
}

static void send_frame(unsigned char kind, const void *content, size_t size) {
  uint32_t length = htonl((uint32_t)size);
  outgoing[0] = kind;
  memcpy(outgoing + 1, &length, sizeof length);
  if (content != NULL) memcpy(outgoing + HEAD_BYTES, content, size);
  outgoing_size = HEAD_BYTES + size;
  sent = 0;
  flush_outgoing();
}

/* Before anything else the server sends one frame. */
size_t channel_request(char *text, size_t room) {
  signal(SIGPIPE, SIG_IGN);
  while (!has_frame()) receive();
  size_t size = content_size();
  if (received[0] != REQUEST || size > room) exit(2);
  memcpy(text, received + HEAD_BYTES, size);
  drop_frame();
  return size;
}

static _Noreturn void end_with(const char *text) {
  send_frame(ENDED, text, strlen(text));
  while (outgoing_size > 0) flush_outgoing();
  exit(0);
}

void channel_refuse(const char *format, ...) {
  char text[TEXT_BYTES];
  va_list arguments;
  int size = snprintf(text, sizeof text, "error ");
  va_start(arguments, format);
  vsnprintf(text + size, sizeof text - (size_t)size, format, arguments);
  va_end(arguments);
  end_with(text);
}

/* ---- to the task ---- */

static void close_input(struct channel *channel) {
  if (channel->to < 0) return;
  shutdown(channel->to, SHUT_WR); /* of a socket */
  close(channel->to);
  channel->to = -1;
}

static void set_window(const struct channel *channel) {
  uint16_t size[2];
  if (!channel->has_terminal || channel->to < 0 || content_size() != sizeof size) return;
  memcpy(size, received + HEAD_BYTES, sizeof size);
  struct winsize window = {.ws_row = ntohs(size[0]), .ws_col = ntohs(size[1])};
  ioctl(channel->to, TIOCSWINSZ, &window);
}

/* Returns true if the frame is done. */
static bool write_input(struct channel *channel) {
  while (channel->to >= 0 && written < content_size()) {
    ssize_t n = write(channel->to, received + HEAD_BYTES + written, content_size() - written);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return false;
    if (n < 0) close_input(channel); /* nothing reads there any more */
    else written += (size_t)n;
  }
  return true;
}

static bool obey(struct channel *channel) {
  switch (received[0]) {
    case DATA: return write_input(channel);
    /* The input of a terminal does not end. */
    case END: return channel->has_terminal ? true : (close_input(channel), true);
    case WINDOW: return set_window(channel), true;
    default: exit(2);
  }
}

/* ---- from the task ---- */

static void pass_on(int *from, unsigned char kind) {
  char piece[PIECE_BYTES];
  ssize_t n = read(*from, piece, sizeof piece);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n > 0) return send_frame(kind, piece, (size_t)n);
  close(*from);
  *from = -1;
  if (kind == DATA) send_frame(END, NULL, 0);
}

/* Takes the terminal, or the end of the command. */
static void hear_link(struct channel *channel, char *end, size_t room) {
  struct link_message message = {0};
  struct passed files;
  ssize_t n = receive_files(channel->link, &message, sizeof message, &files, 0);
  if (n == 1 && message.kind == 'M' && files.count == 1 && channel->to < 0) {
    close(channel->from);
    channel->to = files.list[0];
    channel->from = dup(channel->to);
    fcntl(channel->to, F_SETFL, O_RDWR | O_NONBLOCK);
    return;
  }
  close_files(&files);
  if (n == sizeof message && message.kind == LINK_EXITED) exit_text(end, room, message.status);
  close(channel->link);
  channel->link = -1;
}

static void drop_signals(struct channel *channel) {
  char text[TEXT_BYTES];
  if (read(channel->guard, text, sizeof text) > 0) return;
  close(channel->guard);
  channel->guard = -1;
}

/* ---- the channel ---- */

/* A port is over when both directions are; a command, when nothing of it is left. */
static bool is_over(const struct channel *channel, bool is_command, int64_t drain_until) {
  if (!is_command) return channel->from < 0 && channel->to < 0;
  if (channel->link >= 0) return false;
  return (channel->from < 0 && channel->errors < 0) || now_boot() >= drain_until;
}

void channel_run(struct channel *channel) {
  bool is_command = channel->link >= 0;
  char end[TEXT_BYTES];
  int64_t drain_until = INT64_MAX;
  snprintf(end, sizeof end, "%s", is_command ? "error its process was killed" : "closed");
  fcntl(0, F_SETFL, O_RDWR | O_NONBLOCK);
  fcntl(1, F_SETFL, O_RDWR | O_NONBLOCK);
  send_frame(OPENED, NULL, 0);
  while (outgoing_size > 0 || !is_over(channel, is_command, drain_until)) {
    bool is_waiting = channel->has_terminal && channel->to < 0 && channel->link >= 0;
    while (!is_waiting && has_frame() && obey(channel)) drop_frame();
    bool is_free = outgoing_size == 0;
    struct pollfd waits[] = {
      {is_waiting || has_frame() ? -1 : 0, POLLIN, 0},
      {is_free ? -1 : 1, POLLOUT, 0},
      {has_frame() ? channel->to : -1, POLLOUT, 0},
      {is_free ? channel->from : -1, POLLIN, 0},
      {is_free ? channel->errors : -1, POLLIN, 0},
      {channel->link, POLLIN, 0},
      {channel->guard, POLLIN, 0},
      {0, 0, 0}, /* the server has gone */
    };
    if (poll(waits, 8, channel->link >= 0 || !is_command ? -1 : 100) < 0) continue;
    if ((waits[7].revents & (POLLHUP | POLLERR)) != 0 && (waits[0].revents & POLLIN) == 0) exit(0);
    if (waits[1].revents != 0) flush_outgoing();
    if (waits[5].revents != 0) {
      hear_link(channel, end, sizeof end);
      if (channel->link < 0) drain_until = now_boot() + DRAIN_MS;
      continue;
    }
    if (waits[6].revents != 0) drop_signals(channel);
    if (waits[0].revents != 0) receive();
    if (outgoing_size == 0 && waits[3].revents != 0) pass_on(&channel->from, DATA);
    if (outgoing_size == 0 && waits[4].revents != 0) pass_on(&channel->errors, ERRORS);
  }
  end_with(end);
}
