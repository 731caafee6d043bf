/*
 * worker NOTE MIB busy:MS idle:MS ...: a task of a fidelity run that works on a real GPU. Takes MIB of it, runs kernels over all of that while it is busy, says so
 * on its control socket, and ends with 0 only if what it finds in the end is what its kernels made. NOTE: where it writes down its socket's path once it runs.
 * Its time begins with its process. Needs no toolkit: the kernel is PTX, which the driver compiles.
 */
#include "driver.h"
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define MAX_CHUNKS 4096
/* So much of each chunk is looked at in the end. */
#define LOOK_WORDS (MIB / 4)
#define BLOCKS 1024
#define THREADS 256

/* add(at, words, value): adds value to each 32-bit word. */
static const char *const KERNEL =
  ".version 6.0\n.target sm_50\n.address_size 64\n"
  ".visible .entry add(.param .u64 at, .param .u64 words, .param .u32 value) {\n"
  "  .reg .pred %done; .reg .b32 %r<8>; .reg .b64 %d<8>;\n"
  "  ld.param.u64 %d1, [at]; ld.param.u64 %d2, [words]; ld.param.u32 %r1, [value];\n"
  "  mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x; mov.u32 %r5, %nctaid.x;\n"
  "  mad.lo.u32 %r6, %r2, %r3, %r4; cvt.u64.u32 %d3, %r6;\n"
  "  mul.lo.u32 %r7, %r5, %r3; cvt.u64.u32 %d4, %r7;\n"
  "again:\n"
  "  setp.ge.u64 %done, %d3, %d2; @%done bra end;\n"
  "  shl.b64 %d5, %d3, 2; add.u64 %d6, %d1, %d5;\n"
  "  ld.global.u32 %r4, [%d6]; add.u32 %r4, %r4, %r1; st.global.u32 [%d6], %r4;\n"
  "  add.u64 %d3, %d3, %d4; bra again;\n"
  "end:\n  ret;\n}\n";

static uint64_t chunks[MAX_CHUNKS];
static uint32_t buffer[CHUNK_MIB * MIB / 4];

static double now_ms(void) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  return at.tv_sec * 1e3 + at.tv_nsec / 1e6;
}

static void wait_until(double ms) {
  double left = ms - now_ms();
  if (left <= 0) return;
  struct timespec time = {(time_t)(left / 1e3), (long)((left - 1e3 * (long)(left / 1e3)) * 1e6)};
  nanosleep(&time, NULL);
}

/* Without a socket, as in a container, activity is sampled. A server that is away is not told; its successor listens at the same path. */
static void tell(const char *path, const char *line) {
  if (!path) return;
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  if (strlen(path) >= sizeof address.sun_path) exit(1);
  strcpy(address.sun_path, path);
  int file = socket(AF_UNIX, SOCK_STREAM, 0);
  if (connect(file, (struct sockaddr *)&address, sizeof address) != 0 || send(file, line, strlen(line), MSG_NOSIGNAL) < 0) perror("control socket");
  close(file);
}

static uint32_t pattern(uint64_t chunk, uint64_t word) { return (uint32_t)(word * 2654435761U + chunk * 40503U + 1); }

int main(int argc, char **argv) {
  const double began = now_ms();
  const char *path = getenv("HEADROOM_SOCKET");
  if (argc < 4) return 2;
  tell(path, "{\"busy\": true}\n");
  FILE *note = fopen(argv[1], "w");
  if (!note || (path && fputs(path, note) < 0) || fclose(note) != 0) return 1;

  const unsigned long mib = strtoul(argv[2], NULL, 10), count = (mib + CHUNK_MIB - 1) / CHUNK_MIB;
  if (count == 0 || count > MAX_CHUNKS) return 2;
  open_library("libcuda.so.1");
  int (*init)(unsigned) = (int (*)(unsigned))find("cuInit");
  int (*device_get)(int *, int) = (int (*)(int *, int))find("cuDeviceGet");
  int (*create)(void **, unsigned, int) = (int (*)(void **, unsigned, int))find("cuCtxCreate_v2");
  int (*allocate)(uint64_t *, size_t) = (int (*)(uint64_t *, size_t))find("cuMemAlloc_v2");
  int (*to_gpu)(uint64_t, const void *, size_t) = (int (*)(uint64_t, const void *, size_t))find("cuMemcpyHtoD_v2");
  int (*from_gpu)(void *, uint64_t, size_t) = (int (*)(void *, uint64_t, size_t))find("cuMemcpyDtoH_v2");
  int (*load)(void **, const void *) = (int (*)(void **, const void *))find("cuModuleLoadData");
  int (*function)(void **, void *, const char *) = (int (*)(void **, void *, const char *))find("cuModuleGetFunction");
  int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **) =
    (int (*)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **))find("cuLaunchKernel");
  int (*synchronize)(void) = (int (*)(void))find("cuCtxSynchronize");

  int device;
  void *context, *module, *add;
  check("cuInit", init(0));
  check("cuDeviceGet", device_get(&device, 0));
  check("cuCtxCreate", create(&context, 0, device));
  check("cuModuleLoadData", load(&module, KERNEL));
  check("cuModuleGetFunction", function(&add, module, "add"));
  for (unsigned long chunk = 0, left = mib; chunk < count; chunk++, left -= CHUNK_MIB) {
    size_t bytes = (left < CHUNK_MIB ? left : CHUNK_MIB) * MIB;
    for (size_t word = 0; word < LOOK_WORDS; word++) buffer[word] = pattern(chunk, word);
    check("cuMemAlloc", allocate(&chunks[chunk], bytes));
    check("cuMemcpyHtoD", to_gpu(chunks[chunk], buffer, bytes));
  }

  uint32_t passes = 0, one = 1;
  double from = began;
  for (int phase = 3; phase < argc; phase++) {
    const double until = from + strtod(strchr(argv[phase], ':') ? strchr(argv[phase], ':') + 1 : "0", NULL);
    if (argv[phase][0] == 'i') {
      tell(path, "{\"busy\": false}\n");
      wait_until(until);
      /* Waits while the memory is elsewhere. */
      check("cuCtxSynchronize", synchronize());
      from = now_ms();
      tell(path, "{\"busy\": true}\n");
      continue;
    }
    while (now_ms() < until) {
      for (unsigned long chunk = 0, left = mib; chunk < count; chunk++, left -= CHUNK_MIB) {
        uint64_t words = (left < CHUNK_MIB ? left : CHUNK_MIB) * MIB / 4;
        void *values[] = {&chunks[chunk], &words, &one};
        check("cuLaunchKernel", launch(add, BLOCKS, 1, 1, THREADS, 1, 1, 0, NULL, values, NULL));
      }
      check("cuCtxSynchronize", synchronize());
      passes++;
    }
    from = until;
  }
  for (unsigned long chunk = 0; chunk < count; chunk++) {
    check("cuMemcpyDtoH", from_gpu(buffer, chunks[chunk], LOOK_WORDS * 4));
    for (size_t word = 0; word < LOOK_WORDS; word++) {
      if (buffer[word] == pattern(chunk, word) + passes) continue;
      fprintf(stderr, "chunk %lu word %zu is not what %u passes made\n", chunk, word, passes);
      return 1;
    }
  }
  printf("%u passes over %lu MiB\n", passes, mib);
  return 0;
}
