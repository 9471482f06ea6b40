/*
 * Between a stub inside a Windows program and the test that plays the service behind it: one TCP
 * connection to 127.0.0.1 per call. A message is its length and then fields, each a length and so many
 * bytes of UTF-8; lengths are 32 bits, lowest byte first, and a length of -1 is a null pointer. As RPC to
 * a real service does, a call blocks its thread until the service answers or goes away.
 */
#ifndef CHANNEL_H
#define CHANNEL_H

#include <winsock2.h>
#include <windows.h>

typedef struct {
    char *data;
    size_t length;
    size_t capacity;
} Message;

void put_text(Message *message, const char *text);
void put_wide(Message *message, const wchar_t *text);
void put_number(Message *message, unsigned long long number);

/* Fields of an answer, in their order; `at` starts at 0. Text is malloc'ed, NULL for a null pointer. */
long long take_number(const Message *message, size_t *at);
wchar_t *take_wide(const Message *message, size_t *at);
char *take_bytes(const Message *message, size_t *at, size_t *length);

typedef enum { ANSWERED, NOBODY_THERE, GONE_MEANWHILE } Outcome;

/* Sends the request, waits for the answer, frees the request's data. */
Outcome exchange(Message *request, Message *answer);

/* Keeps one connection open until the process ends, by which the service sees that end. */
void show_life(void);

#endif
