/*
 * Stands in for the whole program, and says what it was executed with: a line for each fact, then "stdin" with its
 * length and a checksum. Status 7. With "twice" as its name it executes its arguments with one variable twice.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef _WIN32
extern char **environ;

static void say_descriptors(void) {
  DIR *open = opendir("/proc/self/fd");
  struct dirent *entry;
  printf("descriptors");
  while (open != NULL && (entry = readdir(open)) != NULL)
    if (entry->d_name[0] != '.' && atoi(entry->d_name) != dirfd(open)) printf(" %s", entry->d_name);
  printf("\n");
  closedir(open);
}

static void say_ignored_signals(void) {
  char line[256];
  FILE *status = fopen("/proc/self/status", "r");
  while (status != NULL && fgets(line, sizeof line, status) != NULL)
    if (strncmp(line, "SigIgn:", 7) == 0) printf("ignored %s", line + 8);
  fclose(status);
}

static void say_environment(void) {
  size_t bytes = 0;
  for (char **variable = environ; *variable != NULL; variable++) bytes += strlen(*variable) + 1;
  for (char **variable = environ; *variable != NULL; variable++)
    if (strlen(*variable) < 100) printf("variable %s\n", *variable);
  printf("environment %zu\n", bytes);
}
#endif

int main(int count, char **arguments) {
#ifndef _WIN32
  if (strcmp(arguments[0], "twice") == 0) {
    char *list[] = {"CNI_COMMAND=ADD", "CNI_IFNAME=eth0", "CNI_IFNAME=eth1", NULL};
    execve(arguments[1], arguments + 1, list);
    return 1;
  }
#endif
  for (int i = 0; i < count; i++) printf("argument %s\n", arguments[i]);
#ifndef _WIN32
  say_environment();
  say_descriptors();
  say_ignored_signals();
#endif
  unsigned long sum = 0;
  size_t length = 0;
  int c;
  while ((c = getchar()) != EOF) {
    sum = (sum * 31 + (unsigned long)c) % 1000000007;
    length++;
  }
  printf("stdin %lu %lu\n", (unsigned long)length, sum);
  return 7;
}
