#include "channel.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Written by the test, which listens there. */
static const wchar_t port_file[] = L"C:\\pipette-test\\port";

static void put_bytes(Message *message, const void *bytes, size_t count) {
    if (message->length + count > message->capacity) {
        message->capacity = 2 * (message->length + count) + 256;
        message->data = realloc(message->data, message->capacity);
        if (message->data == NULL) abort();
    }
    memcpy(message->data + message->length, bytes, count);
    message->length += count;
}

static void put_field(Message *message, const char *bytes, size_t count) {
    unsigned int length = bytes == NULL ? 0xFFFFFFFFu : (unsigned int)count;
    put_bytes(message, &length, sizeof length);
    if (bytes != NULL) put_bytes(message, bytes, count);
}

void put_text(Message *message, const char *text) { put_field(message, text, text == NULL ? 0 : strlen(text)); }

void put_wide(Message *message, const wchar_t *text) {
    if (text == NULL) {
        put_field(message, NULL, 0);
        return;
    }
    int count = WideCharToMultiByte(CP_UTF8, 0, text, -1, NULL, 0, NULL, NULL);
    char *bytes = malloc(count);
    WideCharToMultiByte(CP_UTF8, 0, text, -1, bytes, count, NULL, NULL);
    put_field(message, bytes, count - 1);
    free(bytes);
}

void put_number(Message *message, unsigned long long number) {
    char text[32];
    snprintf(text, sizeof text, "%llu", number);
    put_text(message, text);
}

char *take_bytes(const Message *message, size_t *at, size_t *length) {
    unsigned int count;
    *length = 0;
    if (*at + sizeof count > message->length) return NULL;
    memcpy(&count, message->data + *at, sizeof count);
    *at += sizeof count;
    if (count == 0xFFFFFFFFu || *at + count > message->length) return NULL;
    char *bytes = malloc(count + 1);
    memcpy(bytes, message->data + *at, count);
    bytes[count] = 0;
    *at += count;
    *length = count;
    return bytes;
}

long long take_number(const Message *message, size_t *at) {
    size_t length;
    char *text = take_bytes(message, at, &length);
    long long number = text == NULL ? 0 : strtoll(text, NULL, 10);
    free(text);
    return number;
}

wchar_t *take_wide(const Message *message, size_t *at) {
    size_t length;
    char *text = take_bytes(message, at, &length);
    if (text == NULL) return NULL;
    int count = MultiByteToWideChar(CP_UTF8, 0, text, -1, NULL, 0);
    wchar_t *wide = malloc(count * sizeof *wide);
    MultiByteToWideChar(CP_UTF8, 0, text, -1, wide, count);
    free(text);
    return wide;
}

static int port(void) {
    char text[16] = "";
    DWORD read = 0;
    HANDLE file = CreateFileW(port_file, GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_WRITE, NULL, OPEN_EXISTING, 0, NULL);
    if (file == INVALID_HANDLE_VALUE) return 0;
    ReadFile(file, text, sizeof text - 1, &read, NULL);
    CloseHandle(file);
    return atoi(text);
}

static SOCKET connected(void) {
    WSADATA ignored;
    WSAStartup(MAKEWORD(2, 2), &ignored);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((u_short)port())};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    SOCKET server = socket(AF_INET, SOCK_STREAM, 0);
    if (server == INVALID_SOCKET) return server;
    if (connect(server, (struct sockaddr *)&address, sizeof address) == 0) return server;
    closesocket(server);
    return INVALID_SOCKET;
}

static int send_all(SOCKET server, const char *data, size_t length) {
    while (length > 0) {
        int sent = send(server, data, (int)length, 0);
        if (sent <= 0) return 0;
        data += sent;
        length -= sent;
    }
    return 1;
}

static int receive_all(SOCKET server, char *data, size_t length) {
    while (length > 0) {
        int received = recv(server, data, (int)length, 0);
        if (received <= 0) return 0;
        data += received;
        length -= received;
    }
    return 1;
}

static int send_message(SOCKET server, const Message *message) {
    unsigned int length = (unsigned int)message->length;
    return send_all(server, (const char *)&length, sizeof length) && send_all(server, message->data, length);
}

static int receive_message(SOCKET server, Message *message) {
    unsigned int length;
    if (!receive_all(server, (char *)&length, sizeof length)) return 0;
    message->data = malloc(length);
    message->length = message->capacity = length;
    return receive_all(server, message->data, length);
}

Outcome exchange(Message *request, Message *answer) {
    SOCKET server = connected();
    Outcome outcome = NOBODY_THERE;
    if (server != INVALID_SOCKET) {
        outcome = send_message(server, request) && receive_message(server, answer) ? ANSWERED : GONE_MEANWHILE;
        closesocket(server);
    }
    free(request->data);
    return outcome;
}

void show_life(void) {
    Message hello = {0};
    put_text(&hello, "life");
    put_number(&hello, GetCurrentProcessId());
    SOCKET server = connected();
    if (server != INVALID_SOCKET) send_message(server, &hello);
    free(hello.data);
}
