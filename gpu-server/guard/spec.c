/* Reads what to run from standard input, as strings terminated by NUL, so that no secret of the task is in an
 * argument or a file. */
#include "guard.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SPEC_BYTES ((size_t)8 << 20)
#define ANSWER_BYTES 512

static _Noreturn void answer(const char *kind, const char *format, va_list arguments) {
  char text[ANSWER_BYTES];
  size_t size = (size_t)snprintf(text, sizeof text, "%s ", kind);
  vsnprintf(text + size, sizeof text - size - 1, format, arguments);
  strcat(text, "\n");
  if (write(1, text, strlen(text)) < 0) _exit(2);
  _exit(1);
}

void refuse(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  answer("error", format, arguments);
}

void refuse_as(const char *kind, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  answer(kind, format, arguments);
}

struct strings { char *at, *end; };

static char *next(struct strings *rest) {
  char *end = rest->at < rest->end ? memchr(rest->at, 0, (size_t)(rest->end - rest->at)) : NULL;
  if (end == NULL) refuse("guard: its input is cut off");
  char *text = rest->at;
  rest->at = end + 1;
  return text;
}

static long long number(struct strings *rest, long long least, long long most) {
  char *text = next(rest), *end;
  errno = 0;
  long long value = strtoll(text, &end, 10);
  if (errno != 0 || end == text || *end != 0 || value < least || value > most) refuse("guard: bad number in its input: %.40s", text);
  return value;
}

static char **list(struct strings *rest) {
  size_t count = (size_t)number(rest, 0, SPEC_BYTES / 2);
  char **strings = calloc(count + 1, sizeof *strings);
  if (strings == NULL) refuse("guard: out of memory");
  for (size_t i = 0; i < count; i++) strings[i] = next(rest);
  return strings;
}

static struct strings read_input(void) {
  char *memory = mmap(NULL, SPEC_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) refuse("guard: out of memory");
  size_t size = 0;
  for (;;) {
    ssize_t n = read(0, memory + size, SPEC_BYTES - size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) refuse("guard: cannot read its input: %s", strerror(errno));
    if (n == 0) break;
    size += (size_t)n;
    if (size == SPEC_BYTES) refuse_as("task", "command and environment exceed %zu bytes", SPEC_BYTES);
  }
  return (struct strings){memory, memory + size};
}

void added_request_read(struct added_request *request) {
  struct strings rest = read_input();
  request->has_terminal = number(&rest, 0, 1) == 1;
  request->size = (struct winsize){0};
  request->size.ws_row = (unsigned short)number(&rest, 0, UINT16_MAX);
  request->size.ws_col = (unsigned short)number(&rest, 0, UINT16_MAX);
  request->terminal = next(&rest);
  request->argv = list(&rest);
  if (request->argv[0] == NULL || request->argv[0][0] == 0) refuse("command: it is empty");
}

void spec_read(struct spec *spec) {
  struct strings rest = read_input();
  spec->memory = rest.at;
  spec->size = (size_t)(rest.end - rest.at);
  spec->memory_size = SPEC_BYTES;
  spec->task = next(&rest);
  spec->attempt = next(&rest);
  spec->uid = (long)number(&rest, -1, UINT32_MAX - 1);
  spec->gid = (long)number(&rest, -1, UINT32_MAX - 1);
  spec->own_group = (long)number(&rest, -1, UINT32_MAX - 1);
  spec->is_leased = number(&rest, 0, 1) == 1;
  spec->is_isolated = number(&rest, 0, 1) == 1;
  spec->is_contained = number(&rest, 0, 1) == 1;
  spec->max_output = (uint64_t)number(&rest, 0, INT64_MAX);
  spec->folder_cgroup = strdup(next(&rest));
  spec->is_memory_limited = number(&rest, 0, 1) == 1;
  spec->limit_cgroups = list(&rest);
  spec->working_directory = next(&rest);
  spec->argv = list(&rest);
  spec->env = list(&rest);
  if (spec->argv[0] == NULL || spec->argv[0][0] == 0) refuse_as("task", "command: it is empty");
}

void spec_forget(struct spec *spec) {
  munmap(spec->memory, spec->memory_size);
  free(spec->limit_cgroups);
  free(spec->argv);
  free(spec->env);
}
