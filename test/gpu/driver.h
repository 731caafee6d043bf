/* What the CUDA programs of `make test-gpu` share: the driver's library, looked up by name; no toolkit is needed. */
#ifndef HEADROOM_TEST_DRIVER_H
#define HEADROOM_TEST_DRIVER_H
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#define MIB (1024UL * 1024UL)
#define CHUNK_MIB 64UL

static void *library;

static void open_library(const char *name) {
  library = dlopen(name, RTLD_NOW);
  if (library) return;
  fprintf(stderr, "%s\n", dlerror());
  exit(1);
}

static void *find(const char *name) {
  void *found = dlsym(library, name);
  if (found) return found;
  fprintf(stderr, "libcuda has no %s\n", name);
  exit(1);
}

static void check(const char *what, int code) {
  if (code == 0) return;
  fprintf(stderr, "%s: CUDA error %d\n", what, code);
  exit(1);
}
#endif
