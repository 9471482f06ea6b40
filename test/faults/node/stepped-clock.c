// Preloaded into plugin and agent: a wall clock that is as many nanoseconds ahead as a file says, which all of them map.
// Monotonic clocks, and the times of files, are the kernel's own and stay as they are, as when somebody sets the clock.
#define _GNU_SOURCE
#include <elf.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
#include "stepped-time.h"

static const volatile int64_t *ahead;

__attribute__((constructor(101))) static void map(void) {
  const char *path = getenv("PIPETTE_TEST_CLOCK");
  int fd = path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  void *page = mmap((void *)CLOCK_PAGE, sizeof *ahead, PROT_READ, MAP_SHARED | MAP_FIXED_NOREPLACE, fd, 0);
  if (page != MAP_FAILED) ahead = page;
  close(fd);
}

// Go looks for the vDSO when it starts, which is after this.
__attribute__((constructor(102))) static void replace_vdso(int argc, char **argv, char **environment) {
  (void)argc, (void)argv;
  const char *path = getenv("PIPETTE_TEST_VDSO");
  int fd = path == NULL || ahead == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC);
  struct stat file;
  if (fd < 0 || fstat(fd, &file) != 0) return;
  void *image = mmap(NULL, file.st_size, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
  close(fd);
  if (image == MAP_FAILED) return;
  // The auxiliary vector stands behind the environment, as the kernel has left both.
  char **end = environment;
  while (*end != NULL) end++;
  for (Elf64_auxv_t *entry = (Elf64_auxv_t *)(end + 1); entry->a_type != AT_NULL; entry++)
    if (entry->a_type == AT_SYSINFO_EHDR) entry->a_un.a_val = (uint64_t)image;
}

int clock_gettime(clockid_t clock, struct timespec *time) {
  int status = syscall(SYS_clock_gettime, clock, time);
  if (status != 0 || ahead == NULL || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE)) return status;
  put_ahead(time, *ahead);
  return 0;
}

int gettimeofday(struct timeval *time, void *zone) {
  (void)zone;
  struct timespec now;
  if (clock_gettime(CLOCK_REALTIME, &now) != 0) return -1;
  time->tv_sec = now.tv_sec;
  time->tv_usec = now.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *into) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (into != NULL) *into = now.tv_sec;
  return now.tv_sec;
}
