// Preloaded into plugin and agent: a wall clock that is as many nanoseconds ahead as a file says, which all of them map.
// Monotonic clocks, and the times of files, are the kernel's own and stay as they are, as when somebody sets the clock.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *ahead;

__attribute__((constructor)) static void map(void) {
  const char *path = getenv("PIPETTE_TEST_CLOCK");
  int fd = path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  void *page = mmap(NULL, sizeof *ahead, PROT_READ, MAP_SHARED, fd, 0);
  if (page != MAP_FAILED) ahead = page;
  close(fd);
}

int clock_gettime(clockid_t clock, struct timespec *time) {
  int status = syscall(SYS_clock_gettime, clock, time);
  if (status != 0 || ahead == NULL || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE)) return status;
  int64_t nanoseconds = time->tv_nsec + *ahead % 1000000000;
  time->tv_sec += *ahead / 1000000000;
  if (nanoseconds >= 1000000000) time->tv_sec++, nanoseconds -= 1000000000;
  if (nanoseconds < 0) time->tv_sec--, nanoseconds += 1000000000;
  time->tv_nsec = nanoseconds;
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
