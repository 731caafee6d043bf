/*
 * fill MIB SEED LIBRARY: a small CUDA program that needs no toolkit. Takes MIB of GPU memory, fills it with a pattern, says "ready <sum>" (of what it
 * wrote), then "sum <sum>" (of what it reads back) for every line on standard input, and ends with it. All the while another thread asks whether the GPU is done,
 * which does not wait for memory that is elsewhere: it must stand still then.
 */
#include "driver.h"
#include <inttypes.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#define MAX_CHUNKS 65536
#define ASK_EVERY_US 20000

static uint64_t chunks[MAX_CHUNKS];
static uint64_t buffer[CHUNK_MIB * MIB / 8];

static uint64_t next(uint64_t *state) {
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return *state;
}

/* FNV-1a over words. */
static uint64_t sum(uint64_t before, size_t words) {
  for (size_t word = 0; word < words; word++) before = (before ^ buffer[word]) * 1099511628211UL;
  return before;
}

static void *keep_asking(void *context) {
  int (*set_current)(void *) = (int (*)(void *))find("cuCtxSetCurrent");
  int (*synchronize)(void) = (int (*)(void))find("cuCtxSynchronize");
  check("cuCtxSetCurrent", set_current(context));
  for (;; usleep(ASK_EVERY_US)) check("cuCtxSynchronize", synchronize());
  return NULL;
}

int main(int argc, char **argv) {
  if (argc != 4) return 2;
  unsigned long mib = strtoul(argv[1], NULL, 10), count = (mib + CHUNK_MIB - 1) / CHUNK_MIB;
  uint64_t state = strtoull(argv[2], NULL, 10) * 2654435769UL + 1, written = 14695981039346656037UL;
  if (count == 0 || count > MAX_CHUNKS) return 2;
  open_library(argv[3]);
  int (*init)(unsigned) = (int (*)(unsigned))find("cuInit");
  int (*device_get)(int *, int) = (int (*)(int *, int))find("cuDeviceGet");
  int (*create)(void **, unsigned, int) = (int (*)(void **, unsigned, int))find("cuCtxCreate_v2");
  int (*allocate)(uint64_t *, size_t) = (int (*)(uint64_t *, size_t))find("cuMemAlloc_v2");
  int (*to_gpu)(uint64_t, const void *, size_t) = (int (*)(uint64_t, const void *, size_t))find("cuMemcpyHtoD_v2");
  int (*from_gpu)(void *, uint64_t, size_t) = (int (*)(void *, uint64_t, size_t))find("cuMemcpyDtoH_v2");

  int device;
  void *context;
  check("cuInit", init(0));
  check("cuDeviceGet", device_get(&device, 0));
  check("cuCtxCreate", create(&context, 0, device));
  pthread_t asking;
  if (pthread_create(&asking, NULL, keep_asking, context) != 0) return 1;
  for (unsigned long chunk = 0, left = mib; chunk < count; chunk++, left -= CHUNK_MIB) {
    size_t bytes = (left < CHUNK_MIB ? left : CHUNK_MIB) * MIB;
    check("cuMemAlloc", allocate(&chunks[chunk], bytes));
    for (size_t word = 0; word < bytes / 8; word++) buffer[word] = next(&state);
    check("cuMemcpyHtoD", to_gpu(chunks[chunk], buffer, bytes));
    written = sum(written, bytes / 8);
  }
  printf("ready %016" PRIx64 "\n", written);
  fflush(stdout);
  for (char line[64]; fgets(line, sizeof line, stdin);) {
    uint64_t read = 14695981039346656037UL;
    for (unsigned long chunk = 0, left = mib; chunk < count; chunk++, left -= CHUNK_MIB) {
      size_t bytes = (left < CHUNK_MIB ? left : CHUNK_MIB) * MIB;
      memset(buffer, 0, bytes);
      check("cuMemcpyDtoH", from_gpu(buffer, chunks[chunk], bytes));
      read = sum(read, bytes / 8);
    }
    printf("sum %016" PRIx64 "\n", read);
    fflush(stdout);
  }
  return 0;
}
