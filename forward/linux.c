/* Linux: unix sockets, and exec of the whole program. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "forward.h"

/* Of newer kernels, which may insist on it: nothing in it is ever executed. */
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8U
#endif

extern char **environ;
static char **arguments;
static int server = -1;

uint64_t now_us(void) {
  struct timespec now;
  if (clock_gettime(CLOCK_BOOTTIME, &now) != 0) return 0;
  return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

bool add_variables(void) {
  bool can_forward = true;
  for (char **variable = environ; *variable != NULL; variable++)
    if (add_variable(*variable) == CANNOT_FORWARD) can_forward = false;
  return can_forward;
}

/* --- Descriptors ------------------------------------------------------------------------------------------------ */

/* A runtime may start us without some of 0, 1 and 2: nothing of ours may become one of them. */
static int out_of_the_way(int fd) {
  if (fd < 0 || fd > STDERR_FILENO) return fd;
  const int moved = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  close(fd);
  return moved;
}

static void wait_for(int fd, short events, int ms) {
  struct pollfd poller = {fd, events, 0};
  poll(&poller, 1, ms);
}

/* As read(2), of a descriptor that may be without waiting. A closed one is empty. */
static ssize_t read_some(int fd, uint8_t *into, size_t room) {
  for (;;) {
    const ssize_t got = read(fd, into, room);
    if (got >= 0) return got;
    if (errno == EBADF) return 0;
    if (errno == EAGAIN) wait_for(fd, POLLIN, -1);
    else if (errno != EINTR) return -1;
  }
}

/* Waits as long as it takes, also where the descriptor does not. One that was never open takes everything. */
static bool write_all(int fd, const uint8_t *bytes, size_t length) {
  while (length > 0) {
    const ssize_t written = write(fd, bytes, length);
    if (written >= 0) {
      bytes += written;
      length -= (size_t)written;
    } else if (errno == EAGAIN) {
      wait_for(fd, POLLOUT, -1);
    } else if (errno != EINTR) {
      return errno == EBADF;
    }
  }
  return true;
}

static bool say(int fd, const char *text) {
  return write_all(fd, (const uint8_t *)text, strlen(text));
}

bool read_input(uint8_t *into, size_t room, size_t *length) {
  while (*length < room) {
    const ssize_t got = read_some(STDIN_FILENO, into + *length, room - *length);
    if (got < 0) return false;
    if (got == 0) break;
    *length += (size_t)got;
  }
  return true;
}

/* --- The server ------------------------------------------------------------------------------------------------- */

/* Whoever called listen(2) on the socket. */
static bool is_of_root(int fd) {
  struct ucred peer;
  socklen_t length = sizeof peer;
  return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && length == sizeof peer && peer.uid == 0;
}

/* `absent`: that nobody listens there. */
static bool connect_to(const char *path, size_t path_bytes, bool *absent) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  const struct timeval patience = {0, CONNECT_MS * 1000};
  *absent = false;
  memcpy(address.sun_path, path, path_bytes);
  server = out_of_the_way(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (server < 0) return false;
  /* Also for connect(2), which waits while the listener's queue is full. */
  if (setsockopt(server, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) == 0 &&
      connect(server, (const struct sockaddr *)&address, sizeof address) == 0) {
    if (is_of_root(server)) return true;
  } else {
    *absent = errno == ENOENT || errno == ECONNREFUSED;
  }
  hang_up();
  return false;
}

bool connect_server(enum face face) {
  _Static_assert(sizeof PIPETTE_AGENT_SOCKET <= sizeof((struct sockaddr_un *)NULL)->sun_path, "the path is too long");
  _Static_assert(sizeof PIPETTE_IPAM_SOCKET <= sizeof((struct sockaddr_un *)NULL)->sun_path, "the path is too long");
  bool absent = true;
  if (face == FACE_IPAM && connect_to(PIPETTE_IPAM_SOCKET, sizeof PIPETTE_IPAM_SOCKET, &absent)) return true;
  return absent && connect_to(PIPETTE_AGENT_SOCKET, sizeof PIPETTE_AGENT_SOCKET, &absent);
}

void hang_up(void) {
  close(server);
  server = -1;
}

/* `false`: it is too late to wait. */
static bool wait_for_server(short events, uint64_t until_us) {
  const uint64_t now = now_us();
  if (now >= until_us) return false;
  wait_for(server, events, (int)((until_us - now + 999) / 1000));
  return true;
}

bool send_request(const uint8_t *bytes, size_t length, uint64_t until_us) {
  while (length > 0) {
    const ssize_t sent = send(server, bytes, length, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) {
      bytes += sent;
      length -= (size_t)sent;
    } else if (errno != EINTR && (errno != EAGAIN || !wait_for_server(POLLOUT, until_us))) {
      return false;
    }
  }
  return true;
}

size_t receive(uint8_t *into, size_t room, uint64_t until_us) {
  while (wait_for_server(POLLIN, until_us)) {
    const ssize_t got = recv(server, into, room, MSG_DONTWAIT);
    if (got >= 0) return (size_t)got;
    if (errno != EINTR && errno != EAGAIN) return 0;
  }
  return 0;
}

/* --- The ends of a call ----------------------------------------------------------------------------------------- */

_Noreturn void deliver(uint32_t status, const uint8_t *out, size_t out_bytes, const uint8_t *err, size_t err_bytes) {
  /* Only here, where nothing is executed any more: an ignored signal would be inherited. */
  signal(SIGPIPE, SIG_IGN);
  write_all(STDERR_FILENO, err, err_bytes);
  if (write_all(STDOUT_FILENO, out, out_bytes)) _exit((int)status);
  char why[128];
  snprintf(why, sizeof why, "Cannot write the result to standard output: %s, wanted a reader that takes all of it\n",
           errno == EPIPE ? "EPIPE" : errno == ENOSPC ? "ENOSPC" : strerror(errno));
  say(STDERR_FILENO, why);
  /* A failure without any words helps nobody. */
  if (status != 0) write_all(STDERR_FILENO, out, out_bytes);
  _exit(1);
}

/* A runtime reads a CNI error; its message must not say that something is "not found", which means done to some. */
static _Noreturn void fail(const char *action, int number) {
  char text[512];
  const int length =
      snprintf(text, sizeof text,
               "{\"cniVersion\":\"" PIPETTE_LATEST_VERSION "\",\"code\":5,\"msg\":\"Cannot %s: errno %d\"}\n", action, number);
  deliver(1, (const uint8_t *)text, length > 0 ? (size_t)length : 0, NULL, 0);
}

static _Noreturn void execute(char **list) {
  execve(PIPETTE_WHOLE_PROGRAM, list, environ);
  fail("start \\\"" PIPETTE_WHOLE_PROGRAM "\\\"", errno);
}

_Noreturn void become_whole(void) {
  execute(arguments);
}

/* What has been read of standard input, and what has not. */
static bool copy_input(int into, const struct handover *handover) {
  static uint8_t part[16 * 1024];
  if (!write_all(into, handover->input, handover->input_bytes)) return false;
  size_t length = handover->input_bytes;
  while (length > INPUT_BYTES && length < WHOLE_INPUT_BYTES) {
    const ssize_t got = read_some(STDIN_FILENO, part, sizeof part);
    if (got <= 0) return got == 0;
    if (!write_all(into, part, (size_t)got)) return false;
    length += (size_t)got;
  }
  return true;
}

_Noreturn void become_whole_with(const struct handover *handover) {
  static char forwarded[] = "--forwarded";
  static char unasked[] = "unasked";
  static char lost[] = "lost";
  static char started[24];
  /* It would become itself for ever. */
  if (arguments[0] != NULL && arguments[1] != NULL && strcmp(arguments[1], forwarded) == 0)
    fail("go on: \\\"" PIPETTE_WHOLE_PROGRAM "\\\" is the small program", ELOOP);
  int input = memfd_create("stdin", MFD_CLOEXEC | MFD_NOEXEC_SEAL);
  if (input < 0 && errno == EINVAL) input = memfd_create("stdin", MFD_CLOEXEC);
  input = out_of_the_way(input);
  /* The descriptor that dup2(2) makes is kept over an exec, the other one is not. */
  if (input < 0 || !copy_input(input, handover) || lseek(input, 0, SEEK_SET) != 0 || dup2(input, STDIN_FILENO) < 0)
    fail("hand standard input over", errno);
  snprintf(started, sizeof started, "%" PRIu64, handover->started_us);
  char *list[] = {arguments[0], forwarded, handover->why == LOST ? lost : unasked, started, NULL};
  execute(list);
}

int main(int count, char **list) {
  arguments = list;
  forward(face_of(count > 0 && list[0] != NULL ? list[0] : ""));
}
