/*
 * The task's output. One thread moves it from two pipes into memory, another writes it to files, so that a
 * hanging disk stops neither the guard's deadline nor the task. A file is named after its stream and the
 * offset of its first byte. Both streams together keep at most the limit; the oldest file is dropped first. A
 * gap anywhere else is marked in the stream itself.
 */
#include "guard.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define SEGMENTS 8
#define LEAST_SEGMENT_BYTES 1024
#define BUFFER_BYTES 262144
#define MARKER_BYTES 96
#define STACK_BYTES 65536
/* Maximum time that a task waits for a disk that accepts nothing. */
#define STALL_MS 1000

struct stream {
  const char *name;
  int pipe;
  /* Shared by the threads: total bytes taken in and written out; the buffer holds the difference. */
  char buffer[BUFFER_BYTES];
  uint64_t taken, written;
  uint64_t lost; /* dropped by the reader, not marked yet */
  /* Used by the writer only. */
  int file;
  uint64_t offset, start; /* of the stream, of its open file */
  uint64_t refused; /* dropped by the disk, not marked yet */
};

struct segment { struct stream *stream; uint64_t start; };

static struct stream streams[2] = {{.name = "stdout", .file = -1}, {.name = "stderr", .file = -1}};
static struct segment segments[SEGMENTS]; /* oldest first */
static int segment_count;
static uint64_t segment_bytes;
static int finish_event, room_event, done_event;
static atomic_uint_fast64_t dropped;
static atomic_bool is_finishing;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t has_data = PTHREAD_COND_INITIALIZER;
static bool is_read; /* no more output follows */
static int64_t progress_at; /* when the writer last made progress */

static void tell(int event) {
  uint64_t one = 1;
  while (write(event, &one, sizeof one) < 0 && errno == EINTR) {}
}

static size_t marker(char text[MARKER_BYTES], uint64_t missing) {
  return (size_t)snprintf(text, MARKER_BYTES, "\n[headroom: %" PRIu64 " bytes of output are missing here]\n", missing);
}

/* ---- the writer ---- */

/* Drops the oldest file that is not the open file of another stream. */
static void drop_segment(const struct stream *stream) {
  int i = 0;
  while (segments[i].stream != stream && segments[i].start == segments[i].stream->start) i++;
  char name[64];
  snprintf(name, sizeof name, "%s.%" PRIu64, segments[i].stream->name, segments[i].start);
  unlink(name);
  memmove(segments + i, segments + i + 1, (size_t)(--segment_count - i) * sizeof *segments);
}

static bool open_segment(struct stream *stream) {
  char name[64];
  if (stream->file >= 0 && stream->offset - stream->start < segment_bytes) return true;
  snprintf(name, sizeof name, "%s.%" PRIu64, stream->name, stream->offset);
  int file = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) return false;
  if (stream->file >= 0) close(stream->file);
  if (segment_count == SEGMENTS) drop_segment(stream);
  stream->file = file;
  stream->start = stream->offset;
  segments[segment_count++] = (struct segment){stream, stream->start};
  return true;
}

/* Returns the number of bytes that the disk accepted. */
static size_t put(struct stream *stream, const char *data, size_t size) {
  size_t done = 0;
  while (done < size && open_segment(stream)) {
    uint64_t room = segment_bytes - (stream->offset - stream->start);
    ssize_t n = write(stream->file, data + done, size - done < room ? size - done : (size_t)room);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    stream->offset += (uint64_t)n;
    done += (size_t)n;
  }
  return done;
}

/* Bytes that a full or broken disk does not accept are dropped and counted; offsets count kept bytes. */
static void keep(struct stream *stream, const char *data, size_t size) {
  char text[MARKER_BYTES];
  size_t marked = stream->refused == 0 ? 0 : marker(text, stream->refused), done = 0;
  if (marked == 0 || put(stream, text, marked) == marked) {
    stream->refused = 0;
    done = put(stream, data, size);
  }
  stream->refused += size - done;
  atomic_fetch_add(&dropped, size - done);
}

static void *write_all(void *unused) {
  (void)unused;
  pthread_mutex_lock(&lock);
  for (;;) {
    bool is_idle = true;
    for (int i = 0; i < 2; i++) {
      struct stream *stream = &streams[i];
      if (stream->taken == stream->written) continue;
      is_idle = false;
      bool was_full = stream->taken - stream->written > BUFFER_BYTES / 2;
      size_t at = stream->written % BUFFER_BYTES, size = (size_t)(stream->taken - stream->written);
      if (size > BUFFER_BYTES - at) size = BUFFER_BYTES - at;
      pthread_mutex_unlock(&lock);
      keep(stream, stream->buffer + at, size);
      pthread_mutex_lock(&lock);
      stream->written += size;
      progress_at = now_boot();
      if (was_full) tell(room_event);
    }
    if (is_idle && is_read) break;
    if (is_idle) pthread_cond_wait(&has_data, &lock);
  }
  pthread_mutex_unlock(&lock);
  tell(done_event);
  return NULL;
}

/* ---- the reader ---- */

static size_t room_of(const struct stream *stream) { return BUFFER_BYTES - (size_t)(stream->taken - stream->written); }

/* Always leaves room for a marker. */
static bool is_full(const struct stream *stream) { return room_of(stream) <= 2 * MARKER_BYTES; }

static void close_pipe(struct stream *stream) {
  close(stream->pipe);
  stream->pipe = -1;
}

static void mark_loss(struct stream *stream) {
  char text[MARKER_BYTES];
  size_t size = marker(text, stream->lost);
  if (stream->lost == 0 || room_of(stream) < size) return;
  for (size_t i = 0; i < size; i++) stream->buffer[stream->taken++ % BUFFER_BYTES] = text[i];
  stream->lost = 0;
}

static bool is_over(ssize_t n) { return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR); }

/* The disk has accepted nothing for too long: the task continues without its output. */
static bool lose(struct stream *stream) {
  static char nowhere[BUFFER_BYTES];
  ssize_t n = read(stream->pipe, nowhere, sizeof nowhere);
  if (n > 0) {
    stream->lost += (uint64_t)n;
    atomic_fetch_add(&dropped, (uint64_t)n);
  }
  if (is_over(n)) close_pipe(stream);
  return n > 0;
}

/* Returns true while there may be more to read. The writer only reads the bytes between `written` and
 * `taken`. */
static bool take(struct stream *stream) {
  if (is_full(stream)) return now_boot() - progress_at >= STALL_MS && lose(stream);
  mark_loss(stream);
  size_t at = stream->taken % BUFFER_BYTES, size = room_of(stream) - MARKER_BYTES;
  ssize_t n = read(stream->pipe, stream->buffer + at, size < BUFFER_BYTES - at ? size : BUFFER_BYTES - at);
  if (n > 0) {
    if (streams[0].taken == streams[0].written && streams[1].taken == streams[1].written) progress_at = now_boot();
    stream->taken += (uint64_t)n;
    pthread_cond_signal(&has_data);
  }
  if (is_over(n)) close_pipe(stream);
  return n > 0 || (n < 0 && errno == EINTR);
}

static void *read_all(void *unused) {
  (void)unused;
  for (;;) {
    struct pollfd waits[4] = {{-1, POLLIN, 0}, {-1, POLLIN, 0}, {finish_event, POLLIN, 0}, {room_event, POLLIN, 0}};
    uint64_t count;
    bool is_waiting = false, is_more = false;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < 2; i++) {
      bool waits_for_room = is_full(&streams[i]) && now_boot() - progress_at < STALL_MS;
      is_waiting |= waits_for_room && streams[i].pipe >= 0;
      if (!waits_for_room) waits[i].fd = streams[i].pipe;
    }
    pthread_mutex_unlock(&lock);
    if (is_waiting && atomic_load(&is_finishing)) waits[2].fd = -1; /* known, and not yet to be obeyed */
    if (poll(waits, 4, is_waiting ? STALL_MS : -1) < 0) continue;
    if (waits[3].revents != 0 && read(room_event, &count, sizeof count) < 0) continue;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < 2; i++)
      if (waits[i].fd >= 0 && waits[i].revents != 0) is_more |= take(&streams[i]);
    pthread_mutex_unlock(&lock);
    if (waits[2].revents != 0 && !is_more && !is_waiting) break;
  }
  pthread_mutex_lock(&lock);
  for (int i = 0; i < 2; i++) mark_loss(&streams[i]);
  is_read = true;
  pthread_cond_signal(&has_data);
  pthread_mutex_unlock(&lock);
  return NULL;
}

bool output_start(const int pipes[2], uint64_t max_bytes, int done) {
  pthread_attr_t attributes;
  pthread_t reader, writer;
  segment_bytes = max_bytes / SEGMENTS < LEAST_SEGMENT_BYTES ? LEAST_SEGMENT_BYTES : max_bytes / SEGMENTS;
  done_event = done;
  progress_at = now_boot();
  finish_event = eventfd(0, EFD_CLOEXEC);
  room_event = eventfd(0, EFD_CLOEXEC);
  for (int i = 0; i < 2; i++) {
    streams[i].pipe = pipes[i];
    fcntl(pipes[i], F_SETFL, O_NONBLOCK);
  }
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, STACK_BYTES);
  return finish_event >= 0 && room_event >= 0 && pthread_create(&writer, &attributes, write_all, NULL) == 0 &&
         pthread_create(&reader, &attributes, read_all, NULL) == 0;
}

void output_finish(void) {
  atomic_store(&is_finishing, true);
  tell(finish_event);
}

uint64_t output_dropped(void) { return atomic_load(&dropped); }
