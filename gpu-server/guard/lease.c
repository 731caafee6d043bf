/* The run lease: 24 bytes that the server writes at once, mapped and locked so that reading never waits for a
 * disk. */
#include "guard.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define CHECK UINT64_C(0x48454144524f4f4d)
#define TORN_READS 100
#define TORN_PAUSE_NS 1000000

struct page { volatile uint64_t until, length, check; };

static const struct page *page;

static int64_t now(clockid_t clock) {
  struct timespec at;
  clock_gettime(clock, &at);
  return (int64_t)at.tv_sec * 1000 + at.tv_nsec / 1000000;
}

int64_t now_boot(void) { return now(CLOCK_BOOTTIME); }

int64_t suspended_for(void) { return now(CLOCK_BOOTTIME) - now(CLOCK_MONOTONIC); }

bool lease_open(const char *path) {
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  struct stat about;
  bool is_whole = fstat(file, &about) == 0 && about.st_size >= (off_t)sizeof *page;
  void *at = is_whole ? mmap(NULL, sizeof *page, PROT_READ, MAP_SHARED | MAP_POPULATE, file, 0) : MAP_FAILED;
  close(file);
  if (at == MAP_FAILED) return false;
  mlock(at, sizeof *page);
  page = at;
  return true;
}

struct lease lease_read(void) {
  for (int i = 0; i < TORN_READS; i++) {
    uint64_t until = page->until, length = page->length;
    if ((until ^ length ^ CHECK) == page->check) return (struct lease){(int64_t)until, (int64_t)length};
    nanosleep(&(struct timespec){0, TORN_PAUSE_NS}, NULL); /* a write is in progress */
  }
  return (struct lease){0, 0};
}
