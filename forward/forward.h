/* One forwarded call: its bounds, and the seam between the state machine and the system. PROTOCOL.md has the bytes. */
#ifndef FORWARD_H
#define FORWARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  REQUEST_HEADER_BYTES = 48,
  ANSWER_HEADER_BYTES = 24,
  BUILD_ID_BYTES = 16,
  /* Runtimes send some hundred bytes; what is longer holds up the daemon's other callers. */
  VARIABLES_BYTES = 64 * 1024,
  /* The specification has six, tracing three; a runtime may have more of its own. */
  VARIABLES_COUNT = 64,
  /* A network configuration is a few kB; a longer one holds up the daemon's other callers. */
  INPUT_BYTES = 64 * 1024,
  /* maxStdinBytes of shared/cni/dispatch.ts, which refuses what is longer: more need not be handed over. */
  WHOLE_INPUT_BYTES = 1024 * 1024 + 1,
  /* One gRPC message: a result is a kB, a log line or two. */
  ANSWER_BYTES = 4 * 1024 * 1024,
  /* limits.longestTimeoutMs: the most that a configuration may ask for. */
  TAKEN_MS = 600 * 1000,
  /* For a listener whose queue is full. */
  CONNECT_MS = 250,
  /* Until a server must have said something. It does before it changes anything; one that is frozen never. */
  ANSWER_US = 1000 * 1000,
};

/* --- answer.c: the only reader of bytes from outside that decides by them --------------------------------------- */

/* FOREIGN: of another protocol, as from an agent that is older than this one. */
enum verdict { MORE, DONE, PASS, TAKEN, GARBAGE, FOREIGN };

struct answer {
  uint32_t status;
  uint32_t out_bytes;
  uint32_t err_bytes;
  uint32_t more_ms;
};

/* What the first `length` bytes of a stream are. MORE: too few to tell, and never as many as header and bound together. */
enum verdict scan_answer(const uint8_t *bytes, size_t length, struct answer *answer);

/* --- forward.c: the state machine, the same for every system ---------------------------------------------------- */

enum face { FACE_PIPETTE = 0, FACE_IPAM = 1 };

/* By the name it was started under, as main.ts does. */
enum face face_of(const char *argv0);

/* The call's variables, put into the request one after another. */
enum added { ADDED, NOT_FOR_US, CANNOT_FORWARD };
enum added add_variable(const char *text);

_Noreturn void forward(enum face face);

/* --- linux.c, windows.c ----------------------------------------------------------------------------------------- */

/* Why the whole program runs the call: nobody was asked, or a server may have seen it. */
enum why { UNASKED, LOST };

/* What a call leaves to the whole program once standard input has been read. */
struct handover {
  enum why why;
  uint64_t started_us;
  const uint8_t *input;
  size_t input_bytes;
};

/* Microseconds since the boot, by the clock that the daemons go by. */
uint64_t now_us(void);

/* Hands every variable to add_variable. `false`: they cannot be forwarded. */
bool add_variables(void);

/* Standard input to its end or until `room` is full. `false`: it cannot be read, which the whole program is to say. */
bool read_input(uint8_t *into, size_t room, size_t *length);

/* A connection whose other end is root's. `false`: there is none, and nobody has had a byte. */
bool connect_server(enum face face);

/* All of it before `until_us`. `false`: the server has not got all, and cannot have begun. */
bool send_request(const uint8_t *bytes, size_t length, uint64_t until_us);

/* At least a byte before `until_us`, or 0: end, failure, or too late. */
size_t receive(uint8_t *into, size_t room, uint64_t until_us);

void hang_up(void);

/* Ends the process with what a plugin would have said. */
_Noreturn void deliver(uint32_t status, const uint8_t *out, size_t out_bytes, const uint8_t *err, size_t err_bytes);

/* Becomes the whole program, with argument list and standard input as they came. */
_Noreturn void become_whole(void);

/* Becomes the whole program for a call whose standard input has been read. */
_Noreturn void become_whole_with(const struct handover *handover);

#endif
