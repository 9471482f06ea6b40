/* Reads a server's answer: pure, without any state, so that it can be fuzzed by the million. */
#include "forward.h"

static const uint8_t mark[3] = {0, 'P', 'A'};
static const uint8_t protocol = 1;

static uint32_t u32_at(const uint8_t *at) {
  return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

enum verdict scan_answer(const uint8_t *bytes, size_t length, struct answer *answer) {
  for (size_t i = 0; i < sizeof mark && i < length; i++)
    if (bytes[i] != mark[i]) return FOREIGN;
  if (length > sizeof mark && bytes[sizeof mark] != protocol) return GARBAGE;
  if (length < ANSWER_HEADER_BYTES) return MORE;

  const uint32_t kind = u32_at(bytes + 4);
  const struct answer told = {u32_at(bytes + 8), u32_at(bytes + 12), u32_at(bytes + 16), u32_at(bytes + 20)};
  *answer = told;
  if (kind == 1) {
    if (told.status > 255 || told.more_ms != 0) return GARBAGE;
    if (told.out_bytes > ANSWER_BYTES || told.err_bytes > ANSWER_BYTES - told.out_bytes) return GARBAGE;
    return length - ANSWER_HEADER_BYTES < told.out_bytes + told.err_bytes ? MORE : DONE;
  }
  if (told.status != 0 || told.out_bytes != 0 || told.err_bytes != 0) return GARBAGE;
  if (kind == 2) return told.more_ms == 0 ? PASS : GARBAGE;
  if (kind == 3) return told.more_ms > 0 && told.more_ms <= TAKEN_MS ? TAKEN : GARBAGE;
  return GARBAGE;
}
