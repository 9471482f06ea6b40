/*
 * Starts a program once for each name, all at once, and says of each how long it took from its start to its end, its peak
 * memory and its status. Small, because a process has its parent's memory until it executes, and because what a runtime
 * of JavaScript takes to start a process and to hear of its end would count for both sides of a comparison.
 *
 *   launch INPUT OUTPUT NAME... -- PROGRAM [ARGUMENT...]
 *
 * The file INPUT is standard input, OUTPUT followed by the number of the name is standard output. A name becomes the
 * container's id and its namespace below /run/netns; "-" leaves the environment as it is.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MOST 1000

extern char **environ;

static pid_t pids[MOST];
static double started_us[MOST];
static double took_us[MOST];
static long peak_kb[MOST];
static int statuses[MOST];

static double now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static void fail(const char *what) {
  perror(what);
  exit(2);
}

static void start(int i, const char *input, const char *output, char *const program[]) {
  char path[4096];
  snprintf(path, sizeof path, "%s%d", output, i);
  const int in = open(input, O_RDONLY | O_CLOEXEC);
  const int out = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (in < 0 || out < 0) fail(path);
  started_us[i] = now_us();
  pids[i] = vfork();
  if (pids[i] < 0) fail("vfork");
  if (pids[i] == 0) {
    dup2(in, 0);
    dup2(out, 1);
    execve(program[0], program, environ);
    _exit(127);
  }
  close(in);
  close(out);
}

int main(int count, char *arguments[]) {
  int names = 0;
  while (3 + names < count && strcmp(arguments[3 + names], "--") != 0) names++;
  char **program = arguments + 4 + names;
  if (names == 0 || names > MOST || 4 + names >= count) return 2;
  const double began_us = now_us();
  for (int i = 0; i < names; i++) {
    const char *name = arguments[3 + i];
    char namespace[300];
    snprintf(namespace, sizeof namespace, "/run/netns/%s", name);
    if (strcmp(name, "-") != 0) {
      setenv("CNI_CONTAINERID", name, 1);
      setenv("CNI_NETNS", namespace, 1);
    }
    start(i, arguments[1], arguments[2], program);
  }
  for (int left = names; left > 0; left--) {
    int status = 0;
    struct rusage used;
    const pid_t pid = wait4(-1, &status, 0, &used);
    const double ended_us = now_us();
    if (pid < 0) fail("wait4");
    for (int i = 0; i < names; i++) {
      if (pids[i] != pid) continue;
      took_us[i] = ended_us - started_us[i];
      peak_kb[i] = used.ru_maxrss;
      statuses[i] = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
  }
  printf("%.0f\n", now_us() - began_us);
  for (int i = 0; i < names; i++) printf("%.0f %ld %d\n", took_us[i], peak_kb[i], statuses[i]);
  return 0;
}
