/* The state machine of README.md: one call, handed to a daemon or left to the whole program. */
#include "forward.h"

#include <string.h>

static const uint8_t request_mark[4] = {0, 'P', 'F', 1};
static const uint8_t build_id[BUILD_ID_BYTES] = PIPETTE_BUILD_ID;

/* Nothing reads it but installers, those of earlier releases too: a file that has it is ours, and may be replaced. */
__attribute__((used)) static const char mark[] = PIPETTE_MARK;

/* Header, variables, standard input, and one byte more of it, which tells that it is too long. */
static uint8_t request[REQUEST_HEADER_BYTES + VARIABLES_BYTES + INPUT_BYTES + 1];
static size_t variables_bytes;
static size_t variables[VARIABLES_COUNT];
static size_t variables_count;
static bool is_call;
static bool is_version;

static uint8_t received[ANSWER_HEADER_BYTES + ANSWER_BYTES];

/* --- Variables -------------------------------------------------------------------------------------------------- */

static bool is_ours(const char *text) {
  static const char *const traces[] = {"TRACEPARENT=", "TRACESTATE=", "BAGGAGE="};
  if (strncmp(text, "CNI_", 4) == 0 && strchr(text, '=') != NULL) return true;
  for (size_t i = 0; i < sizeof traces / sizeof traces[0]; i++)
    if (strncmp(text, traces[i], strlen(traces[i])) == 0) return true;
  return false;
}

/* Which of two would count is for the whole program to say. */
static bool comes_twice(const char *text) {
  const size_t name_bytes = (size_t)(strchr(text, '=') - text) + 1;
  for (size_t i = 0; i < variables_count; i++)
    if (strncmp((const char *)request + variables[i], text, name_bytes) == 0) return true;
  return false;
}

enum added add_variable(const char *text) {
  static const char command[] = "CNI_COMMAND=";
  if (!is_ours(text)) return NOT_FOR_US;
  if (strncmp(text, command, sizeof command - 1) == 0) {
    is_call = true;
    is_version = strcmp(text + sizeof command - 1, "VERSION") == 0;
  }
  const size_t bytes = strlen(text) + 1;
  if (variables_count == VARIABLES_COUNT || bytes > VARIABLES_BYTES - variables_bytes || comes_twice(text))
    return CANNOT_FORWARD;
  const size_t at = REQUEST_HEADER_BYTES + variables_bytes;
  memcpy(request + at, text, bytes);
  variables[variables_count++] = at;
  variables_bytes += bytes;
  return ADDED;
}

/* --- VERSION ---------------------------------------------------------------------------------------------------- */

static bool is_text(const uint8_t *bytes, size_t length, const char *text) {
  return length == strlen(text) && memcmp(bytes, text, length) == 0;
}

/*
 * The answer where standard input is empty, or, byte for byte, what the specification's library sends. Any other text
 * would have to be understood: the whole program does.
 */
static const char *version_answer(const uint8_t *input, size_t length) {
  static const char empty[] = PIPETTE_VERSION_ANSWER(PIPETTE_LATEST_VERSION);
#define KNOWN(version) {"{\"cniVersion\":\"" version "\"}", PIPETTE_VERSION_ANSWER(version)},
  static const struct {
    const char *asked;
    const char *answer;
  } known[] = {PIPETTE_EACH_VERSION(KNOWN)};
  if (length == 0) return empty;
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
    if (is_text(input, length, known[i].asked)) return known[i].answer;
  return NULL;
}

/* --- The request ------------------------------------------------------------------------------------------------ */

static void put(size_t at, uint64_t value, size_t bytes) {
  for (size_t i = 0; i < bytes; i++) request[at + i] = (uint8_t)(value >> (8 * i));
}

static void put_header(enum face face, size_t input_bytes, uint64_t started_us, uint64_t until_us) {
  memcpy(request, request_mark, sizeof request_mark);
  put(4, variables_bytes, 4);
  put(8, input_bytes, 4);
  put(12, (uint64_t)face, 4);
  put(16, started_us, 8);
  put(24, until_us, 8);
  memcpy(request + 32, build_id, sizeof build_id);
}

static bool is_ipam(const char *name) {
  static const char *const names[] = {"pipette-ipam", "pipette-ipam.exe"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    size_t at = 0;
    while (name[at] != '\0' && (name[at] >= 'A' && name[at] <= 'Z' ? name[at] + 32 : name[at]) == names[i][at]) at++;
    if (name[at] == '\0' && names[i][at] == '\0') return true;
  }
  return false;
}

enum face face_of(const char *argv0) {
  const char *name = argv0;
  for (const char *at = argv0; *at != '\0'; at++)
    if (*at == '/' || *at == '\\') name = at + 1;
  return is_ipam(name) ? FACE_IPAM : FACE_PIPETTE;
}

/* --- The states ------------------------------------------------------------------------------------------------- */

/* WAIT: the request is sent. Comes back where the whole program must run the call. */
static enum why wait_for_answer(uint64_t until_us) {
  size_t length = 0;
  bool taken = false;
  for (;;) {
    struct answer answer;
    switch (scan_answer(received, length, &answer)) {
      case MORE:
        break;
      case DONE: {
        const uint8_t *out = received + ANSWER_HEADER_BYTES;
        hang_up();
        deliver(answer.status, out, answer.out_bytes, out + answer.out_bytes, answer.err_bytes);
      }
      case PASS:
        return UNASKED;
      case TAKEN:
        if (taken) return LOST;
        taken = true;
        until_us = now_us() + (uint64_t)answer.more_ms * 1000;
        length -= ANSWER_HEADER_BYTES;
        memmove(received, received + ANSWER_HEADER_BYTES, length);
        continue;
      case FOREIGN:
        /* Who does not speak this has understood nothing of the request. */
        return taken ? LOST : UNASKED;
      case GARBAGE:
        return LOST;
    }
    const size_t got = receive(received + length, sizeof received - length, until_us);
    if (got == 0) return LOST;
    length += got;
  }
}

/* CONNECT, SEND, WAIT. */
static enum why ask(enum face face, const uint8_t *input, size_t input_bytes, uint64_t started_us) {
  const uint64_t until_us = started_us + ANSWER_US;
  if (!connect_server(face)) return UNASKED;
  put_header(face, input_bytes, started_us, until_us);
  const size_t request_bytes = (size_t)(input - request) + input_bytes;
  const enum why why = send_request(request, request_bytes, until_us) ? wait_for_answer(until_us) : UNASKED;
  hang_up();
  return why;
}

_Noreturn void forward(enum face face) {
  /* START */
  const bool can_forward = add_variables();
  if (!is_call || !can_forward) become_whole();

  /* READ */
  uint8_t *input = request + REQUEST_HEADER_BYTES + variables_bytes;
  size_t input_bytes = 0;
  if (!read_input(input, INPUT_BYTES + 1, &input_bytes)) become_whole();
  struct handover handover = {UNASKED, now_us(), input, input_bytes};

  if (is_version) {
    const char *answer = version_answer(input, input_bytes);
    if (answer != NULL) deliver(0, (const uint8_t *)answer, strlen(answer), NULL, 0);
  } else if (input_bytes <= INPUT_BYTES) {
    handover.why = ask(face, input, input_bytes, handover.started_us);
  }

  /* LOCAL */
  become_whole_with(&handover);
}
