/*
 * The task's output: a thread of its own takes it from two pipes to files, so that a disk that hangs stops neither the guard's
 * deadline nor, before the pipe is full, the task. A stream's file is named after the offset of its first byte; the latest four are kept.
 */
#include "guard.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define SEGMENTS 4
#define LEAST_SEGMENT_BYTES 1024
#define CHUNK_BYTES 16384
#define STACK_BYTES 65536

struct stream {
  const char *name;
  int pipe, file;
  uint64_t offset, starts[SEGMENTS];
  int count;
};

static struct stream streams[2] = {{.name = "stdout", .file = -1}, {.name = "stderr", .file = -1}};
static uint64_t segment_bytes;
static int finish_event, done_event;
static atomic_uint_fast64_t dropped;

static bool open_segment(struct stream *stream) {
  char name[64];
  if (stream->file >= 0 && stream->offset - stream->starts[stream->count - 1] < segment_bytes) return true;
  snprintf(name, sizeof name, "%s.%llu", stream->name, (unsigned long long)stream->offset);
  int file = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) return false;
  if (stream->file >= 0) close(stream->file);
  stream->file = file;
  if (stream->count == SEGMENTS) {
    snprintf(name, sizeof name, "%s.%llu", stream->name, (unsigned long long)stream->starts[0]);
    unlink(name);
    for (int i = 1; i < SEGMENTS; i++) stream->starts[i - 1] = stream->starts[i];
    stream->count--;
  }
  stream->starts[stream->count++] = stream->offset;
  return true;
}

/* What a full or broken disk does not take is dropped and counted; offsets count what was kept. */
static void keep(struct stream *stream, const char *data, size_t size) {
  while (size > 0) {
    if (!open_segment(stream)) break;
    uint64_t room = segment_bytes - (stream->offset - stream->starts[stream->count - 1]);
    ssize_t n = write(stream->file, data, size < room ? size : (size_t)room);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    stream->offset += (uint64_t)n;
    data += n;
    size -= (size_t)n;
  }
  atomic_fetch_add(&dropped, size);
}

/* True while there may be more at once. */
static bool take(struct stream *stream) {
  char data[CHUNK_BYTES];
  ssize_t n = read(stream->pipe, data, sizeof data);
  if (n > 0) keep(stream, data, (size_t)n);
  if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
    close(stream->pipe);
    stream->pipe = -1;
  }
  return n > 0 || (n < 0 && errno == EINTR);
}

static void *run(void *unused) {
  (void)unused;
  for (;;) {
    struct pollfd waits[3] = {{streams[0].pipe, POLLIN, 0}, {streams[1].pipe, POLLIN, 0}, {finish_event, POLLIN, 0}};
    if (poll(waits, 3, -1) < 0) continue;
    bool is_more = false;
    for (int i = 0; i < 2; i++)
      if (streams[i].pipe >= 0 && waits[i].revents != 0) is_more |= take(&streams[i]);
    if (waits[2].revents != 0 && !is_more) break;
  }
  uint64_t one = 1;
  while (write(done_event, &one, sizeof one) < 0 && errno == EINTR) {}
  return NULL;
}

bool output_start(const int pipes[2], uint64_t max_bytes, int done) {
  pthread_attr_t attributes;
  pthread_t thread;
  segment_bytes = max_bytes / SEGMENTS < LEAST_SEGMENT_BYTES ? LEAST_SEGMENT_BYTES : max_bytes / SEGMENTS;
  done_event = done;
  finish_event = eventfd(0, EFD_CLOEXEC);
  for (int i = 0; i < 2; i++) {
    streams[i].pipe = pipes[i];
    fcntl(pipes[i], F_SETFL, O_NONBLOCK);
  }
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, STACK_BYTES);
  return finish_event >= 0 && pthread_create(&thread, &attributes, run, NULL) == 0;
}

void output_finish(void) {
  uint64_t one = 1;
  while (write(finish_event, &one, sizeof one) < 0 && errno == EINTR) {}
}

uint64_t output_dropped(void) { return atomic_load(&dropped); }
