/*
 * powershell.exe, netsh.exe and route.exe: hands its name and arguments to the test and does what that
 * answers. Without an answer it fails, so that nobody takes its silence for success.
 */
#include "channel.h"
#include <stdio.h>
#include <stdlib.h>

static void write_to(DWORD which, const char *bytes, size_t length) {
    DWORD written;
    HANDLE file = GetStdHandle(which);
    while (length > 0 && WriteFile(file, bytes, (DWORD)length, &written, NULL) && written > 0) {
        bytes += written;
        length -= written;
    }
}

int wmain(int argc, wchar_t **argv) {
    static const char no_answer[] = "nobody answers for this command\r\n";
    wchar_t own_path[MAX_PATH];
    Message request = {0}, answer = {0};
    size_t at = 0, length;
    GetModuleFileNameW(NULL, own_path, MAX_PATH);
    put_text(&request, "command");
    put_number(&request, GetCurrentProcessId());
    put_wide(&request, own_path);
    for (int i = 1; i < argc; i++) put_wide(&request, argv[i]);
    if (exchange(&request, &answer) != ANSWERED) {
        write_to(STD_ERROR_HANDLE, no_answer, sizeof no_answer - 1);
        return 98;
    }
    int status = (int)take_number(&answer, &at);
    char *text = take_bytes(&answer, &at, &length);
    if (text != NULL) write_to(STD_OUTPUT_HANDLE, text, length);
    text = take_bytes(&answer, &at, &length);
    if (text != NULL) write_to(STD_ERROR_HANDLE, text, length);
    return status;
}
