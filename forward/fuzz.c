/*
 * Gives the state machine streams of its own making, in pieces of any length, and compares each outcome with a second
 * reading of PROTOCOL.md. "fuzz COUNT SEED", or libFuzzer, which is led by the branches that a stream reaches; built with
 * the sanitizers, of which the first also guards every byte that has not come yet. forward.c is included, so that its
 * memory can be made new for each call.
 */
#include <sanitizer/asan_interface.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include "forward.c"

enum { STREAM_BYTES = 512, VARIABLE_BYTES = 40000 };

struct outcome {
  enum { DELIVERED, WHOLE_UNASKED, WHOLE_LOST, WHOLE_AS_IT_CAME } end;
  size_t out_at;
  struct answer answer;
};

static uint64_t seed;
static uint8_t stream[STREAM_BYTES];
static size_t stream_bytes;
static size_t streamed;
static size_t input_wanted;
static bool sent;
static uint64_t clock_us;
static struct outcome seen;
static jmp_buf ended;

static uint64_t next(void) {
  seed += 0x9e3779b97f4a7c15u;
  uint64_t x = seed;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

static size_t below(size_t bound) {
  return (size_t)(next() % bound);
}

static void require(bool holds, const char *what) {
  if (holds) return;
  fprintf(stderr, "Broken: %s; the stream is", what);
  for (size_t i = 0; i < stream_bytes; i++) fprintf(stderr, " %02x", stream[i]);
  fprintf(stderr, "\n");
  abort();
}

/* --- Streams ---------------------------------------------------------------------------------------------------- */

#ifndef PIPETTE_LIBFUZZER
static void append_u32(uint32_t value) {
  for (unsigned i = 0; i < 4; i++) stream[stream_bytes++] = (uint8_t)(value >> (8 * i));
}

/* Around what the protocol's bounds tell apart. */
static uint32_t strange(void) {
  static const uint32_t values[] = {0, 1, 2, 3, 24, 255, 256, TAKEN_MS, TAKEN_MS + 1, ANSWER_BYTES, ANSWER_BYTES + 1,
                                    0x7fffffff, 0x80000000, 0xffffffe8, 0xffffffff};
  return below(4) == 0 ? (uint32_t)next() : values[below(sizeof values / sizeof values[0])];
}

static void append_answer(void) {
  const uint32_t kind = (uint32_t)below(5);
  const uint32_t out_bytes = kind == 1 ? (uint32_t)below(40) : 0;
  const uint32_t err_bytes = kind == 1 ? (uint32_t)below(40) : 0;
  const uint32_t fields[] = {kind, kind == 1 ? (uint32_t)below(256) : 0, out_bytes, err_bytes,
                             kind == 3 ? (uint32_t)below(TAKEN_MS) + 1 : 0};
  const size_t wrong = below(20);
  memcpy(stream + stream_bytes, "\0PA\1", 4);
  stream_bytes += 4;
  for (size_t i = 0; i < 5; i++) append_u32(i == wrong ? strange() : fields[i]);
  for (uint32_t i = 0; i < out_bytes + err_bytes; i++) stream[stream_bytes++] = (uint8_t)next();
}

static void make_stream(void) {
  stream_bytes = 0;
  for (size_t answers = below(4); answers > 0; answers--) append_answer();
  for (size_t changes = below(3); changes > 0 && stream_bytes > 0; changes--)
    stream[below(stream_bytes)] = (uint8_t)next();
  if (below(3) == 0 && stream_bytes > 0) stream_bytes = below(stream_bytes);
  if (below(8) == 0) stream[stream_bytes++] = (uint8_t)next();
}
#endif

/* PROTOCOL.md once more: what a client that sees the whole stream, and then its end, must make of it. */
static struct outcome expected(void) {
  struct outcome wanted = {WHOLE_LOST, 0, {0, 0, 0, 0}};
  /* Who speaks no such protocol has understood nothing. */
  for (size_t i = 0; i < 3 && i < stream_bytes; i++)
    if (stream[i] != "\0PA"[i]) wanted.end = WHOLE_UNASKED;
  for (size_t at = 0, taken = 0; stream_bytes - at >= 24; at += 24) {
    uint32_t field[6];
    for (size_t i = 0; i < 6; i++) {
      field[i] = 0;
      for (size_t j = 4; j > 0; j--) field[i] = field[i] * 256 + stream[at + 4 * i + j - 1];
    }
    const uint64_t text_bytes = (uint64_t)field[3] + field[4];
    if (field[0] != 0x01415000) break;
    if (field[1] == 1 && field[2] < 256 && field[5] == 0 && text_bytes <= 4194304 && stream_bytes - at - 24 >= text_bytes) {
      wanted.end = DELIVERED;
      wanted.out_at = at + 24;
      wanted.answer = (struct answer){field[2], field[3], field[4], 0};
      break;
    }
    if (field[1] < 2 || field[1] > 3 || field[2] != 0 || text_bytes != 0) break;
    if (field[1] == 2) {
      if (field[5] == 0) wanted.end = WHOLE_UNASKED;
      break;
    }
    if (taken++ > 0 || field[5] < 1 || field[5] > 600000) break;
  }
  return wanted;
}

/* --- The seam --------------------------------------------------------------------------------------------------- */

uint64_t now_us(void) {
  return clock_us;
}

bool add_variables(void) {
  static char text[VARIABLE_BYTES + 32];
  static const char *const names[] = {"CNI_ARGS", "CNI_", "CNI", "CNI_PATH", "BAGGAGE", "TRACEPARENT", "HOME", "CNI_X"};
  bool can_forward = add_variable("CNI_COMMAND=ADD") == ADDED;
  for (size_t count = below(8) == 0 ? below(80) : below(4); count > 0; count--) {
    const size_t length = below(200) == 0 ? below(VARIABLE_BYTES) : below(20);
    const int name_bytes = snprintf(text, 32, "%s%s%zu=", names[below(8)], below(2) == 0 ? "" : "_", below(90));
    memset(text + name_bytes, 'v', length);
    text[(size_t)name_bytes + length] = '\0';
    if (below(30) == 0) *strchr(text, '=') = '-';
    if (add_variable(text) == CANNOT_FORWARD) can_forward = false;
  }
  return can_forward;
}

bool read_input(uint8_t *into, size_t room, size_t *length) {
  require(into + room <= request + sizeof request, "standard input fits");
  *length = input_wanted < room ? input_wanted : room;
  memset(into, 'i', *length);
  return below(50) != 0;
}

bool connect_server(enum face face) {
  return face == FACE_PIPETTE || below(2) == 0;
}

bool send_request(const uint8_t *bytes, size_t length, uint64_t until_us) {
  require(bytes == request && until_us == clock_us + ANSWER_US, "the request is whole");
  require(variables_bytes > 0 && variables_bytes <= VARIABLES_BYTES, "the variables are bounded");
  require(length == REQUEST_HEADER_BYTES + variables_bytes + input_wanted && input_wanted <= INPUT_BYTES, "so is the rest");
  sent = true;
  return true;
}

size_t receive(uint8_t *into, size_t room, uint64_t until_us) {
  require(room > 0 && until_us > 0, "there is room for more");
  size_t got = stream_bytes - streamed;
  if (got > 0 && below(2) == 0) got = 1 + below(got);
  require(got <= room, "what came fits");
  ASAN_UNPOISON_MEMORY_REGION(into, got);
  memcpy(into, stream + streamed, got);
  streamed += got;
  return got;
}

void hang_up(void) {}

_Noreturn void deliver(uint32_t status, const uint8_t *out, size_t out_bytes, const uint8_t *err, size_t err_bytes) {
  const struct outcome wanted = expected();
  require(wanted.end == DELIVERED && status == wanted.answer.status, "this is the result");
  require(out_bytes == wanted.answer.out_bytes && err_bytes == wanted.answer.err_bytes, "it has these lengths");
  require(memcmp(out, stream + wanted.out_at, out_bytes) == 0, "and this text");
  require(memcmp(err, stream + wanted.out_at + out_bytes, err_bytes) == 0, "and this log");
  seen.end = DELIVERED;
  longjmp(ended, 1);
}

_Noreturn void become_whole(void) {
  seen.end = WHOLE_AS_IT_CAME;
  longjmp(ended, 1);
}

_Noreturn void become_whole_with(const struct handover *handover) {
  require(handover->input_bytes == (input_wanted <= INPUT_BYTES ? input_wanted : INPUT_BYTES + 1), "all input is kept");
  seen.end = handover->why == LOST ? WHOLE_LOST : WHOLE_UNASKED;
  require(sent ? expected().end == seen.end : seen.end == WHOLE_UNASKED, "the answer says so");
  longjmp(ended, 1);
}

/* --- The loop --------------------------------------------------------------------------------------------------- */

/* Of the stream that has been made. */
static void one_call(void) {
  streamed = 0;
  input_wanted = below(100) == 0 ? INPUT_BYTES - 2 + below(4) : below(30);
  clock_us = next() % ((uint64_t)1 << 50);
  variables_bytes = 0;
  variables_count = 0;
  is_call = false;
  is_version = false;
  sent = false;
  /* Nothing that has not come may be looked at. */
  ASAN_POISON_MEMORY_REGION(received, STREAM_BYTES);
  if (setjmp(ended) == 0) forward(below(10) == 0 ? FACE_IPAM : FACE_PIPETTE);
  ASAN_UNPOISON_MEMORY_REGION(received, STREAM_BYTES);
}

#ifdef PIPETTE_LIBFUZZER
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

/* The stream is the input; what else happens comes of its sum, so that an input is the same call each time. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
  stream_bytes = length < STREAM_BYTES ? length : STREAM_BYTES;
  memcpy(stream, bytes, stream_bytes);
  seed = stream_bytes;
  for (size_t i = 0; i < stream_bytes; i++) seed = seed * 31 + stream[i];
  one_call();
  return 0;
}
#else
int main(int count, char **list) {
  const uint64_t calls = count > 1 ? strtoull(list[1], NULL, 10) : 1000000;
  seed = count > 2 ? strtoull(list[2], NULL, 10) : 1;
  uint64_t ends[4] = {0, 0, 0, 0};
  for (uint64_t i = 0; i < calls; i++) {
    make_stream();
    one_call();
    ends[seen.end]++;
  }
  printf("delivered %llu, unasked %llu, lost %llu, as it came %llu\n", (unsigned long long)ends[DELIVERED],
         (unsigned long long)ends[WHOLE_UNASKED], (unsigned long long)ends[WHOLE_LOST],
         (unsigned long long)ends[WHOLE_AS_IT_CAME]);
  return 0;
}
#endif
