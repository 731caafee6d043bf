/*
 * Reads the requests that clients send to an inference engine (vLLM, SGLang), and passes on those for serving. Engines
 * have no users: every client that reaches their port may put them to sleep, replace weights or read their settings, and each
 * version adds such paths. So the paths that may pass are listed, not the others.
 *
 * The proxy and the engine must agree where each request ends, or one could hide another. Whatever two readers of HTTP/1.1
 * (RFC 9112) could read in two ways is refused: a length that is given twice or together with chunks, another coding
 * than chunked, lines that do not end with CRLF, folded lines, extensions of chunks, trailers, blanks around names, the
 * absolute form of a target, and a change of the protocol. Nothing of a request is passed before its head was read.
 */
#include "proxy.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#define HEAD_BYTES (32 << 10)
#define MAX_DIGITS 15       /* of a length */
#define MAX_CHUNK_DIGITS 8
#define ROUNDS 16
#define PEEKED_BYTES (8 << 10) /* a longer request line is none */

static const char *const served[] = {"/health", "/health_generate", "/ping", "/version", "/metrics", "/load", "/generate", "/encode",
  "/classify", "/score", "/rerank", "/pooling", "/tokenize", "/detokenize", "/invocations", "/get_model_info", "/model_info"};
static const char *const served_below[] = {"/v1/", "/v2/", "/inference/v1/"};
/* As any part of a path, also where a path may pass. */
static const char *const never[] = {"sleep", "wake_up", "is_sleeping", "release_memory_occupation", "resume_memory_occupation",
  "load_lora_adapter", "unload_lora_adapter", "load_lora_adapter_from_tensors", "flush_cache", "reset_prefix_cache", "collective_rpc",
  "pause", "resume", "is_paused", "pause_generation", "continue_generation", "abort_request", "abort_requests", "update_weights",
  "start_profile", "stop_profile", "server_info", "get_server_info", "shutdown"};

static bool fail(struct requests *requests, int status) {
  requests->status = status;
  return false;
}

/* ---- the target ---- */

static int hex(char c) { return isdigit((unsigned char)c) ? c - '0' : isxdigit((unsigned char)c) ? tolower(c) - 'a' + 10 : -1; }

/* The path of the target as an engine reads it: without what follows ? or #, and decoded once. */
static bool decode_path(const char *target, size_t size, char *path) {
  size_t length = 0;
  for (size_t i = 0; i < size && target[i] != '?' && target[i] != '#'; i++) {
    int c = (unsigned char)target[i];
    if (c > 0x7e) return false;
    if (c == '%') {
      if (i + 2 >= size || hex(target[i + 1]) < 0 || hex(target[i + 2]) < 0) return false;
      c = hex(target[i + 1]) * 16 + hex(target[i + 2]);
      i += 2;
    }
    if (c <= ' ' || c == 0x7f || c == '\\' || c == '%') return false;
    path[length++] = (char)c;
  }
  path[length] = 0;
  return path[0] == '/' && strstr(path, "//") == NULL;
}

static bool has_dots(const char *path) {
  for (const char *part = path; part != NULL; part = strchr(part + 1, '/')) {
    size_t size = strcspn(part + 1, "/;");
    if ((size == 1 && part[1] == '.') || (size == 2 && strncmp(part + 1, "..", 2) == 0)) return true;
  }
  return false;
}

static bool is_never(const char *path) {
  for (const char *part = path; part != NULL; part = strchr(part + 1, '/')) {
    size_t size = strcspn(part + 1, "/;");
    for (size_t i = 0; i < sizeof never / sizeof *never; i++)
      if (strlen(never[i]) == size && strncasecmp(part + 1, never[i], size) == 0) return true;
  }
  return false;
}

static bool may_pass(const char *path) {
  if (is_never(path)) return false;
  for (size_t i = 0; i < sizeof served / sizeof *served; i++)
    if (strcmp(path, served[i]) == 0) return true;
  for (size_t i = 0; i < sizeof served_below / sizeof *served_below; i++)
    if (strncmp(path, served_below[i], strlen(served_below[i])) == 0) return true;
  return false;
}

/* ---- the head ---- */

static bool is_token(const char *text, size_t size) {
  for (size_t i = 0; i < size; i++)
    if (!isalnum((unsigned char)text[i]) && (text[i] == 0 || strchr("!#$%&'*+-.^_`|~", text[i]) == NULL)) return false;
  return size > 0;
}

static bool read_request_line(struct requests *requests, const char *line, size_t size) {
  static char path[HEAD_BYTES + 1];
  const char *target = memchr(line, ' ', size);
  if (target == NULL || !is_token(line, (size_t)(target - line))) return fail(requests, 400);
  target++;
  size_t left = size - (size_t)(target - line);
  const char *version = memchr(target, ' ', left);
  if (version == NULL || left - (size_t)(version - target) != 9 || strncmp(version, " HTTP/1.", 8) != 0) return fail(requests, 400);
  if (version[8] != '0' && version[8] != '1') return fail(requests, 400);
  requests->is_old = version[8] == '0';
  if (!decode_path(target, (size_t)(version - target), path) || has_dots(path)) return fail(requests, 400);
  return may_pass(path) ? true : fail(requests, 403);
}

static bool is_named(const char *line, size_t size, const char *name) {
  return size == strlen(name) && strncasecmp(line, name, size) == 0;
}

static bool read_length(struct requests *requests, const char *value, size_t size) {
  if (requests->has_length || size == 0 || size > MAX_DIGITS) return fail(requests, 400);
  requests->has_length = true;
  requests->left = 0;
  for (size_t i = 0; i < size; i++) {
    if (!isdigit((unsigned char)value[i])) return fail(requests, 400);
    requests->left = requests->left * 10 + (uint64_t)(value[i] - '0');
  }
  return true;
}

static bool read_field(struct requests *requests, const char *line, size_t size) {
  const char *colon = memchr(line, ':', size), *value;
  if (colon == NULL || !is_token(line, (size_t)(colon - line))) return fail(requests, 400);
  size_t name = (size_t)(colon - line), left = size - name - 1;
  for (value = colon + 1; left > 0 && (*value == ' ' || *value == '\t'); left--) value++;
  while (left > 0 && (value[left - 1] == ' ' || value[left - 1] == '\t')) left--;
  if (is_named(line, name, "Upgrade") || is_named(line, name, "HTTP2-Settings")) return fail(requests, 501);
  if (is_named(line, name, "Content-Length")) return read_length(requests, value, left);
  if (!is_named(line, name, "Transfer-Encoding")) return true;
  if (requests->is_chunked || requests->is_old || !is_named(value, left, "chunked")) return fail(requests, 400);
  requests->is_chunked = true;
  return true;
}

/* `size` includes the empty line at its end. */
static bool read_head(struct requests *requests, const char *head, size_t size) {
  requests->has_length = requests->is_chunked = false;
  requests->left = 0;
  for (const char *line = head, *last = head + size - 2; line < last;) {
    const char *end = memchr(line, '\n', (size_t)(last - line));
    if (end == NULL || end == line || end[-1] != '\r') return fail(requests, 400);
    size_t length = (size_t)(end - 1 - line);
    for (size_t i = 0; i < length; i++) {
      unsigned char c = (unsigned char)line[i];
      if ((c < ' ' && c != '\t') || c == 0x7f) return fail(requests, 400);
    }
    if (line == head ? !read_request_line(requests, line, length) : !read_field(requests, line, length)) return false;
    line = end + 1;
  }
  if (requests->is_chunked && requests->has_length) return fail(requests, 400);
  requests->part = requests->is_chunked ? CHUNK_SIZE : requests->left > 0 ? BODY : HEAD;
  return true;
}

/* ---- the body ---- */

/* `line` is whole, with its CRLF; anything but digits in it is refused. */
static bool read_chunk_size(struct requests *requests, const char *line, size_t size) {
  uint64_t chunk = 0;
  if (size < 3 || size > MAX_CHUNK_DIGITS + 2 || line[size - 2] != '\r') return fail(requests, 400);
  for (size_t i = 0; i < size - 2; i++) {
    if (hex(line[i]) < 0) return fail(requests, 400);
    chunk = chunk * 16 + (uint64_t)hex(line[i]);
  }
  requests->left = chunk;
  requests->part = chunk == 0 ? LAST : CHUNK;
  return true;
}

/* Reads one part of what has arrived and was not read. Returns its bytes, or 0: more has to arrive, or it is refused. */
static size_t read_part(struct requests *requests, const char *at, size_t size) {
  const char *end;
  size_t whole;
  switch (requests->part) {
    case HEAD:
      end = memmem(at, size, "\r\n\r\n", 4);
      if (end == NULL) {
        if (size >= HEAD_BYTES) fail(requests, 431);
        return 0;
      }
      whole = (size_t)(end - at) + 4;
      return read_head(requests, at, whole) ? whole : 0;
    case BODY:
    case CHUNK:
      whole = size < requests->left ? size : (size_t)requests->left;
      requests->left -= whole;
      if (requests->left == 0) requests->part = requests->part == BODY ? HEAD : CHUNK_END;
      return whole;
    case CHUNK_SIZE:
      end = memchr(at, '\n', size);
      if (end == NULL && size > MAX_CHUNK_DIGITS + 2) fail(requests, 400);
      if (end == NULL) return 0;
      whole = (size_t)(end - at) + 1;
      return read_chunk_size(requests, at, whole) ? whole : 0;
    case CHUNK_END:
    case LAST:
      if (size < 2) return 0;
      if (at[0] != '\r' || at[1] != '\n') fail(requests, 400);
      if (requests->status != 0) return 0;
      requests->part = requests->part == LAST ? HEAD : CHUNK_SIZE;
      return 2;
  }
  return 0;
}

static void read_parts(struct requests *requests) {
  while (requests->status == 0 && requests->read < requests->size) {
    size_t whole = read_part(requests, requests->buffer + requests->read, requests->size - requests->read);
    if (whole == 0) return;
    requests->read += whole;
  }
}

/* ---- the beginning of a request ---- */

bool begins_request(int client) {
  char text[PEEKED_BYTES];
  ssize_t size = recv(client, text, sizeof text, MSG_PEEK);
  const char *target = size > 0 ? memchr(text, ' ', (size_t)size) : NULL;
  if (target == NULL || !is_token(text, (size_t)(target - text)) || target + 1 == text + size || target[1] != '/') return false;
  const char *end = memchr(target, '\n', (size_t)(text + size - target));
  return end != NULL && end - target > 10 && strncmp(end - 10, " HTTP/1.", 8) == 0 && end[-1] == '\r';
}

/* ---- moving ---- */

void requests_free(struct requests *requests) {
  free(requests->buffer);
  requests->buffer = NULL;
  requests->size = requests->read = 0;
}

/* Sends what was read. */
static enum moved send_read(struct requests *requests, int to, uint64_t *count) {
  while (requests->read > 0) {
    ssize_t size = send(to, requests->buffer, requests->read, MSG_NOSIGNAL);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && errno == EAGAIN) return BLOCKED;
    if (size <= 0) return UNWRITABLE;
    requests->has_passed = true;
    *count += (uint64_t)size;
    requests->size -= (size_t)size;
    requests->read -= (size_t)size;
    memmove(requests->buffer, requests->buffer + size, requests->size);
  }
  return IDLE;
}

enum moved move_requests(struct requests *requests, int from, int to, uint64_t *count) {
  for (int round = 0; round < ROUNDS; round++) {
    enum moved sent = send_read(requests, to, count);
    if (sent != IDLE) return sent;
    if (requests->status != 0) return REFUSED;
    if (requests->buffer == NULL && (requests->buffer = malloc(HEAD_BYTES)) == NULL) return UNREADABLE;
    ssize_t size = recv(from, requests->buffer + requests->size, HEAD_BYTES - requests->size, 0);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) {
      bool is_idle = size < 0 && errno == EAGAIN;
      if (requests->size == 0) requests_free(requests);
      return is_idle ? IDLE : size == 0 ? OVER : UNREADABLE;
    }
    requests->size += (size_t)size;
    read_parts(requests);
  }
  enum moved sent = send_read(requests, to, count);
  return sent != IDLE ? sent : requests->status != 0 ? REFUSED : MORE;
}

/* ---- answers ---- */

const char *status_text(int status) {
  switch (status) {
    case 403: return "403 Forbidden";
    case 431: return "431 Request Header Fields Too Large";
    case 501: return "501 Not Implemented";
    default: return "400 Bad Request";
  }
}
