/* Windows: named pipes, and the whole program as a child that ends with this one. */
#define WIN32_LEAN_AND_MEAN
#define _WIN32_WINNT 0x0602
#include <windows.h>

#include <stdio.h>
#include <string.h>
#include <wchar.h>

#include "forward.h"

/* Documented for drivers and programs alike; advapi32.dll, which has them by other names, takes milliseconds to load. */
NTSYSAPI LONG NTAPI NtOpenProcessToken(HANDLE process, ACCESS_MASK access, PHANDLE token);
NTSYSAPI LONG NTAPI NtQueryInformationToken(HANDLE token, TOKEN_INFORMATION_CLASS what, PVOID told, ULONG room,
                                            PULONG length);

#define WIDE_(text) L##text
#define WIDE(text) WIDE_(text)

enum {
  /* CreateProcessW takes no longer one. */
  COMMAND_LINE_UNITS = 32768,
  /* Windows lets a token have 1024 groups, each an entry of 16 bytes and a SID of at most 68. */
  TOKEN_BYTES = 16 + 1024 * (16 + SECURITY_MAX_SID_SIZE),
};

static HANDLE server = INVALID_HANDLE_VALUE;
/* Of the one operation on the pipe that is under way. */
static HANDLE finished;
static wchar_t command_line[COMMAND_LINE_UNITS];

/* In steps of some 16 ms: the clock that the daemons go by. */
uint64_t now_us(void) {
  return GetTickCount64() * 1000;
}

/* A name of other case means the same variable here, and nothing to a daemon. */
bool add_variables(void) {
  static char text[VARIABLES_BYTES + 1];
  bool can_forward = true;
  wchar_t *block = GetEnvironmentStringsW();
  if (block == NULL) return false;
  for (const wchar_t *variable = block; *variable != L'\0'; variable += wcslen(variable) + 1) {
    static const wchar_t *const names[] = {L"CNI_", L"TRACEPARENT=", L"TRACESTATE=", L"BAGGAGE="};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
      if (_wcsnicmp(variable, names[i], wcslen(names[i])) != 0) continue;
      const int bytes = WideCharToMultiByte(CP_UTF8, WC_ERR_INVALID_CHARS, variable, -1, text, (int)sizeof text, NULL, NULL);
      if (bytes <= 0 || add_variable(text) != ADDED) can_forward = false;
    }
  }
  FreeEnvironmentStringsW(block);
  return can_forward;
}

/* --- Standard streams ------------------------------------------------------------------------------------------- */

/* Absent ones are NULL or invalid. */
static bool is_open(HANDLE stream) {
  return stream != NULL && stream != INVALID_HANDLE_VALUE;
}

/* As ReadFile; the end of a pipe, and a stream that is not there, are an end. */
static bool read_some(HANDLE from, uint8_t *into, size_t room, DWORD *got) {
  *got = 0;
  if (!is_open(from) || ReadFile(from, into, (DWORD)room, got, NULL)) return true;
  const DWORD error = GetLastError();
  return error == ERROR_BROKEN_PIPE || error == ERROR_HANDLE_EOF;
}

static bool write_all(HANDLE into, const uint8_t *bytes, size_t length) {
  if (!is_open(into)) return true;
  while (length > 0) {
    DWORD written = 0;
    if (!WriteFile(into, bytes, (DWORD)length, &written, NULL)) return false;
    bytes += written;
    length -= written;
  }
  return true;
}

bool read_input(uint8_t *into, size_t room, size_t *length) {
  while (*length < room) {
    DWORD got;
    if (!read_some(GetStdHandle(STD_INPUT_HANDLE), into + *length, room - *length, &got)) return false;
    if (got == 0) break;
    *length += got;
  }
  return true;
}

/* --- The server ------------------------------------------------------------------------------------------------- */

/* S-1-5-18 and S-1-5-32-544: revision, number of parts, authority, parts. */
static const uint8_t local_system[] = {1, 1, 0, 0, 0, 0, 0, 5, 18, 0, 0, 0};
static const uint8_t administrators[] = {1, 2, 0, 0, 0, 0, 0, 5, 32, 0, 0, 0, 32, 2, 0, 0};

static bool is_sid(const void *sid, const uint8_t *wanted, size_t bytes) {
  /* The second byte says how long it is. */
  return ((const uint8_t *)sid)[1] == wanted[1] && memcmp(sid, wanted, bytes) == 0;
}

static bool is_in_administrators(HANDLE token) {
  static union {
    TOKEN_GROUPS groups;
    uint8_t bytes[TOKEN_BYTES];
  } told;
  ULONG length;
  if (NtQueryInformationToken(token, TokenGroups, &told, sizeof told, &length) < 0) return false;
  for (DWORD i = 0; i < told.groups.GroupCount; i++) {
    const SID_AND_ATTRIBUTES *group = &told.groups.Groups[i];
    if (!is_sid(group->Sid, administrators, sizeof administrators)) continue;
    /* An administrator who has laid the rights down has the group for denials only. */
    return (group->Attributes & SE_GROUP_ENABLED) != 0 && (group->Attributes & SE_GROUP_USE_FOR_DENY_ONLY) == 0;
  }
  return false;
}

static bool is_local_system(HANDLE token) {
  union {
    TOKEN_USER user;
    uint8_t bytes[sizeof(TOKEN_USER) + SECURITY_MAX_SID_SIZE];
  } told;
  ULONG length;
  return NtQueryInformationToken(token, TokenUser, &told, sizeof told, &length) >= 0 &&
         is_sid(told.user.User.Sid, local_system, sizeof local_system);
}

/* Any program may make a pipe of a name that is free: the process that did must run as SYSTEM or an administrator. */
static bool is_trusted(HANDLE pipe) {
  ULONG pid;
  HANDLE token;
  if (!GetNamedPipeServerProcessId(pipe, &pid)) return false;
  const HANDLE process = OpenProcess(PROCESS_QUERY_LIMITED_INFORMATION, FALSE, pid);
  if (process == NULL) return false;
  bool trusted = false;
  if (NtOpenProcessToken(process, TOKEN_QUERY, &token) >= 0) {
    trusted = is_local_system(token) || is_in_administrators(token);
    CloseHandle(token);
  }
  CloseHandle(process);
  return trusted;
}

static bool connect_to(const wchar_t *name, bool *absent) {
  /* Overlapped, so that each step has its time; the server learns who we are, and cannot act as us. */
  const DWORD flags = FILE_FLAG_OVERLAPPED | SECURITY_SQOS_PRESENT | SECURITY_IDENTIFICATION;
  const uint64_t until_us = now_us() + CONNECT_MS * 1000;
  *absent = false;
  finished = CreateEventW(NULL, TRUE, FALSE, NULL);
  if (finished == NULL) return false;
  for (;;) {
    server = CreateFileW(name, GENERIC_READ | GENERIC_WRITE, 0, NULL, OPEN_EXISTING, flags, NULL);
    if (server != INVALID_HANDLE_VALUE) break;
    const DWORD error = GetLastError();
    *absent = error == ERROR_FILE_NOT_FOUND;
    const uint64_t now = now_us();
    if (error != ERROR_PIPE_BUSY || now >= until_us) return false;
    /* At least 1: 0 would be the server's own bound. */
    WaitNamedPipeW(name, (DWORD)((until_us - now + 999) / 1000));
  }
  if (is_trusted(server)) return true;
  hang_up();
  return false;
}

bool connect_server(enum face face) {
  bool absent = true;
  if (face == FACE_IPAM && connect_to(WIDE(PIPETTE_IPAM_SOCKET), &absent)) return true;
  return absent && connect_to(WIDE(PIPETTE_AGENT_SOCKET), &absent);
}

void hang_up(void) {
  CloseHandle(server);
  server = INVALID_HANDLE_VALUE;
}

/* Waits for an operation that has begun; one that is too late is taken back, so that nothing writes into memory later. */
static bool finish(OVERLAPPED *operation, uint64_t until_us, DWORD *bytes) {
  const uint64_t now = now_us();
  const DWORD ms = now >= until_us ? 0 : (DWORD)((until_us - now + 999) / 1000);
  const bool in_time = WaitForSingleObject(finished, ms) == WAIT_OBJECT_0;
  if (!in_time) CancelIoEx(server, operation);
  return GetOverlappedResult(server, operation, bytes, TRUE) && in_time;
}

bool send_request(const uint8_t *bytes, size_t length, uint64_t until_us) {
  while (length > 0) {
    OVERLAPPED operation = {.hEvent = finished};
    DWORD sent = 0;
    ResetEvent(finished);
    if (!WriteFile(server, bytes, (DWORD)length, NULL, &operation) && GetLastError() != ERROR_IO_PENDING) return false;
    if (!finish(&operation, until_us, &sent)) return false;
    bytes += sent;
    length -= sent;
  }
  return true;
}

size_t receive(uint8_t *into, size_t room, uint64_t until_us) {
  OVERLAPPED operation = {.hEvent = finished};
  DWORD got = 0;
  if (now_us() >= until_us) return 0;
  ResetEvent(finished);
  if (!ReadFile(server, into, (DWORD)room, NULL, &operation) && GetLastError() != ERROR_IO_PENDING) return 0;
  return finish(&operation, until_us, &got) ? got : 0;
}

/* --- The ends of a call ----------------------------------------------------------------------------------------- */

_Noreturn void deliver(uint32_t status, const uint8_t *out, size_t out_bytes, const uint8_t *err, size_t err_bytes) {
  static const char why[] = "Cannot write the result to standard output: it takes no more\n";
  const HANDLE errors = GetStdHandle(STD_ERROR_HANDLE);
  write_all(errors, err, err_bytes);
  if (write_all(GetStdHandle(STD_OUTPUT_HANDLE), out, out_bytes)) ExitProcess(status);
  write_all(errors, (const uint8_t *)why, sizeof why - 1);
  /* A failure without any words helps nobody. */
  if (status != 0) write_all(errors, out, out_bytes);
  ExitProcess(1);
}

static _Noreturn void fail(const char *action) {
  char text[256];
  const int length = snprintf(text, sizeof text,
                              "{\"cniVersion\":\"" PIPETTE_LATEST_VERSION "\",\"code\":5,\"msg\":\"Cannot %s: error %lu\"}\n",
                              action, GetLastError());
  deliver(1, (const uint8_t *)text, length > 0 ? (size_t)length : 0, NULL, 0);
}

/*
 * There is no exec here: a child with the same streams, whose status becomes ours. `input`: what it reads as standard
 * input; the writer of a pipe whose reader it is goes on in `feed`.
 */
static HANDLE start(HANDLE input) {
  STARTUPINFOW begin = {.cb = sizeof begin, .dwFlags = STARTF_USESTDHANDLES};
  PROCESS_INFORMATION child;
  JOBOBJECT_EXTENDED_LIMIT_INFORMATION limits = {0};
  begin.hStdInput = input;
  begin.hStdOutput = GetStdHandle(STD_OUTPUT_HANDLE);
  begin.hStdError = GetStdHandle(STD_ERROR_HANDLE);
  /* A runtime that ends the plugin must end what runs in its place: the job ends with its last handle, which is ours. */
  const HANDLE job = CreateJobObjectW(NULL, NULL);
  limits.BasicLimitInformation.LimitFlags = JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE;
  if (job == NULL || !SetInformationJobObject(job, JobObjectExtendedLimitInformation, &limits, sizeof limits))
    fail("make a job for the whole program");
  if (!CreateProcessW(WIDE(PIPETTE_WHOLE_PROGRAM), command_line, NULL, NULL, TRUE, CREATE_SUSPENDED, NULL, NULL, &begin,
                      &child))
    fail("start the whole program");
  if (!AssignProcessToJobObject(job, child.hProcess) || ResumeThread(child.hThread) == (DWORD)-1) {
    TerminateProcess(child.hProcess, 1);
    fail("put the whole program into a job");
  }
  return child.hProcess;
}

static _Noreturn void end_with(HANDLE child) {
  DWORD status;
  WaitForSingleObject(child, INFINITE);
  if (!GetExitCodeProcess(child, &status)) status = 1;
  ExitProcess(status);
}

_Noreturn void become_whole(void) {
  const wchar_t *given = GetCommandLineW();
  if (wcslen(given) >= COMMAND_LINE_UNITS) fail("hand the arguments over");
  wcscpy(command_line, given);
  end_with(start(GetStdHandle(STD_INPUT_HANDLE)));
}

/* What has been read of standard input, and what has not. A child that has heard enough closes its end. */
static void feed(HANDLE into, const struct handover *handover) {
  static uint8_t part[16 * 1024];
  size_t length = handover->input_bytes;
  if (!write_all(into, handover->input, handover->input_bytes)) return;
  while (length > INPUT_BYTES && length < WHOLE_INPUT_BYTES) {
    DWORD got;
    if (!read_some(GetStdHandle(STD_INPUT_HANDLE), part, sizeof part, &got) || got == 0) return;
    if (!write_all(into, part, got)) return;
    length += got;
  }
}

/* Length of the first argument in a command line, quotes included: the name that the runtime gave. */
static size_t name_units(const wchar_t *line) {
  const wchar_t *at = line;
  bool quoted = false;
  for (; *at != L'\0' && (quoted || (*at != L' ' && *at != L'\t')); at++)
    if (*at == L'"') quoted = !quoted;
  return (size_t)(at - line);
}

_Noreturn void become_whole_with(const struct handover *handover) {
  const wchar_t *given = GetCommandLineW();
  const size_t units = name_units(given);
  HANDLE read_end;
  HANDLE write_end;
  wchar_t more[64];
  /* It would start itself for ever. */
  if (wcsncmp(given + units, L" --forwarded ", 13) == 0) fail("go on: the small program is in place of the whole one");
  if (swprintf(more, sizeof more / sizeof more[0], L" --forwarded %ls %llu", handover->why == LOST ? L"lost" : L"unasked",
               (unsigned long long)handover->started_us) < 0 ||
      units + wcslen(more) >= COMMAND_LINE_UNITS)
    fail("hand the arguments over");
  wcsncpy(command_line, given, units);
  wcscpy(command_line + units, more);
  if (!CreatePipe(&read_end, &write_end, NULL, INPUT_BYTES + 1) ||
      !SetHandleInformation(read_end, HANDLE_FLAG_INHERIT, HANDLE_FLAG_INHERIT))
    fail("hand standard input over");
  const HANDLE child = start(read_end);
  CloseHandle(read_end);
  feed(write_end, handover);
  CloseHandle(write_end);
  end_with(child);
}

int wmain(void);

int wmain(void) {
  static char name[4 * MAX_PATH];
  const wchar_t *given = GetCommandLineW();
  size_t length = 0;
  /* Only the last part counts, and of it only ASCII. */
  for (size_t i = 0; i < name_units(given); i++) {
    if (given[i] == L'/' || given[i] == L'\\') length = 0;
    else if (given[i] != L'"' && length < sizeof name - 1) name[length++] = given[i] < 128 ? (char)given[i] : '?';
  }
  name[length] = '\0';
  forward(face_of(name));
}
