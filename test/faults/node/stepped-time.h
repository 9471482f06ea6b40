#include <stdint.h>
#include <time.h>

/** Makes a time so many nanoseconds later; earlier where they are negative. */
static inline void put_ahead(struct timespec *time, int64_t ahead) {
  int64_t nanoseconds = time->tv_nsec + ahead % 1000000000;
  time->tv_sec += ahead / 1000000000;
  if (nanoseconds >= 1000000000) time->tv_sec++, nanoseconds -= 1000000000;
  if (nanoseconds < 0) time->tv_sec--, nanoseconds += 1000000000;
  time->tv_nsec = nanoseconds;
}
