/* What a test does to named pipes besides our own programs: look at one, take one, crowd one, answer wrongly on one. */
#include <windows.h>
#include <sddl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

static char bytes[1 << 22];
static DWORD length;

static int failed(const char *call) {
  printf("%s answers error %lu\n", call, GetLastError());
  return 1;
}

static void load(const wchar_t *path) {
  HANDLE file = CreateFileW(path, GENERIC_READ, FILE_SHARE_READ, NULL, OPEN_EXISTING, 0, NULL);
  if (file == INVALID_HANDLE_VALUE || !ReadFile(file, bytes, sizeof bytes, &length, NULL)) exit(failed("reading"));
  CloseHandle(file);
}

static HANDLE join(const wchar_t *name, DWORD access) {
  for (;;) {
    HANDLE pipe = CreateFileW(name, access, 0, NULL, OPEN_EXISTING, 0, NULL);
    if (pipe != INVALID_HANDLE_VALUE || GetLastError() != ERROR_PIPE_BUSY) return pipe;
    WaitNamedPipeW(name, 5000);
  }
}

/* access NAME: who serves the pipe, and who may use it */
static int access_of(wchar_t **words) {
  wchar_t *text;
  DWORD needed, server;
  HANDLE pipe = join(words[0], READ_CONTROL);
  if (pipe == INVALID_HANDLE_VALUE) return failed("CreateFile");
  if (!GetKernelObjectSecurity(pipe, DACL_SECURITY_INFORMATION, bytes, sizeof bytes, &needed))
    return failed("GetKernelObjectSecurity");
  if (!ConvertSecurityDescriptorToStringSecurityDescriptorW(bytes, 1, DACL_SECURITY_INFORMATION, &text, NULL))
    return failed("ConvertSecurityDescriptorToStringSecurityDescriptor");
  if (!GetNamedPipeServerProcessId(pipe, &server)) return failed("GetNamedPipeServerProcessId");
  printf("process %lu %ls\n", server, text);
  return 0;
}

/* Reads what is there and counts it; answers whether the other end has closed. */
static int is_closed(HANDLE pipe, unsigned long long *rest) {
  DWORD there, got;
  while (PeekNamedPipe(pipe, NULL, 0, NULL, &there, NULL) && there > 0) {
    if (!ReadFile(pipe, bytes, sizeof bytes, &got, NULL)) break;
    *rest += got;
    Sleep(1);
  }
  return !PeekNamedPipe(pipe, NULL, 0, NULL, &there, NULL);
}

/* crowd NAME COUNT MS [FILE]: so many connections, the file sent over each, nothing read for so long */
static int crowd(wchar_t **words, int count) {
  int wanted = _wtoi(words[1]), closed = 0;
  unsigned long long rest = 0;
  HANDLE *pipes = calloc(wanted, sizeof *pipes);
  if (count > 3) load(words[3]);
  for (int i = 0; i < wanted; i++) {
    DWORD written;
    pipes[i] = join(words[0], GENERIC_READ | GENERIC_WRITE);
    if (pipes[i] == INVALID_HANDLE_VALUE) return failed("CreateFile");
    if (length > 0) WriteFile(pipes[i], bytes, length, &written, NULL);
  }
  printf("open: %d\n", wanted);
  fflush(stdout);
  Sleep(_wtoi(words[2]));
  for (int i = 0; i < wanted; i++) closed += is_closed(pipes[i], &rest);
  printf("closed by the server: %d, left to read: %llu bytes\n", closed, rest);
  return 0;
}

/* serve NAME FILE MS BUSY: one instance, taken by this process itself for BUSY milliseconds; each client that has said
   something is sent the file, and its connection ends MS milliseconds later */
static int serve(wchar_t **words) {
  static char said[65536];
  DWORD moved;
  load(words[1]);
  HANDLE pipe = CreateNamedPipeW(words[0], PIPE_ACCESS_DUPLEX, 0, 1, 65536, 65536, 0, NULL);
  if (pipe == INVALID_HANDLE_VALUE) return failed("CreateNamedPipe");
  HANDLE self = join(words[0], GENERIC_READ | GENERIC_WRITE);
  printf("serving as process %lu\n", GetCurrentProcessId());
  fflush(stdout);
  Sleep(_wtoi(words[3]));
  CloseHandle(self);
  for (;;) {
    DisconnectNamedPipe(pipe);
    if (!ConnectNamedPipe(pipe, NULL) && GetLastError() != ERROR_PIPE_CONNECTED) return failed("ConnectNamedPipe");
    if (!ReadFile(pipe, said, sizeof said, &moved, NULL)) continue;
    printf("heard %lu bytes\n", moved);
    fflush(stdout);
    WriteFile(pipe, bytes, length, &moved, NULL);
    Sleep(_wtoi(words[2]));
  }
}

/* restricted COMMAND…: runs it without the rights of the administrators, their group being there for denials only; it
   ends with this process */
static int restricted(void) {
  SID_IDENTIFIER_AUTHORITY authority = {SECURITY_NT_AUTHORITY};
  SID_AND_ATTRIBUTES group = {0};
  JOBOBJECT_EXTENDED_LIMIT_INFORMATION limits = {0};
  STARTUPINFOW startup = {sizeof startup};
  PROCESS_INFORMATION process;
  HANDLE all, fewer, job = CreateJobObjectW(NULL, NULL);
  DWORD status;
  wchar_t *command = wcsstr(GetCommandLineW(), L" restricted ") + wcslen(L" restricted ");
  limits.BasicLimitInformation.LimitFlags = JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE;
  SetInformationJobObject(job, JobObjectExtendedLimitInformation, &limits, sizeof limits);
  AllocateAndInitializeSid(&authority, 2, SECURITY_BUILTIN_DOMAIN_RID, DOMAIN_ALIAS_RID_ADMINS, 0, 0, 0, 0, 0, 0,
                           &group.Sid);
  if (!OpenProcessToken(GetCurrentProcess(), TOKEN_ALL_ACCESS, &all)) return failed("OpenProcessToken");
  if (!CreateRestrictedToken(all, 0, 1, &group, 0, NULL, 0, NULL, &fewer)) return failed("CreateRestrictedToken");
  if (!CreateProcessAsUserW(fewer, NULL, command, NULL, NULL, TRUE, CREATE_SUSPENDED, NULL, NULL, &startup, &process))
    return failed("CreateProcessAsUser");
  AssignProcessToJobObject(job, process.hProcess);
  ResumeThread(process.hThread);
  WaitForSingleObject(process.hProcess, INFINITE);
  GetExitCodeProcess(process.hProcess, &status);
  return status;
}

/* open NAME: lets everybody use the pipe */
static int open_to_all(wchar_t **words) {
  PSECURITY_DESCRIPTOR everybody;
  HANDLE pipe = join(words[0], READ_CONTROL | WRITE_DAC);
  if (pipe == INVALID_HANDLE_VALUE) return failed("CreateFile");
  if (!ConvertStringSecurityDescriptorToSecurityDescriptorW(L"D:(A;;GA;;;WD)", 1, &everybody, NULL))
    return failed("ConvertStringSecurityDescriptorToSecurityDescriptor");
  if (!SetKernelObjectSecurity(pipe, DACL_SECURITY_INFORMATION, everybody)) return failed("SetKernelObjectSecurity");
  printf("open to all\n");
  return 0;
}

/* mutex NAME [SDDL]: has the mutex, and lets use it whom the text names */
static int mutex(wchar_t **words, int count) {
  SECURITY_ATTRIBUTES attributes = {sizeof attributes};
  if (count > 1 && !ConvertStringSecurityDescriptorToSecurityDescriptorW(words[1], 1, &attributes.lpSecurityDescriptor, NULL))
    return failed("ConvertStringSecurityDescriptorToSecurityDescriptor");
  if (CreateMutexW(&attributes, FALSE, words[0]) == NULL) return failed("CreateMutex");
  printf("has the mutex\n");
  fflush(stdout);
  Sleep(INFINITE);
  return 0;
}

int wmain(int count, wchar_t **words) {
  if (count > 2 && !wcscmp(words[1], L"access")) return access_of(words + 2);
  if (count > 4 && !wcscmp(words[1], L"crowd")) return crowd(words + 2, count - 2);
  if (count > 5 && !wcscmp(words[1], L"serve")) return serve(words + 2);
  if (count > 2 && !wcscmp(words[1], L"restricted")) return restricted();
  if (count > 2 && !wcscmp(words[1], L"open")) return open_to_all(words + 2);
  if (count > 2 && !wcscmp(words[1], L"mutex")) return mutex(words + 2, count - 2);
  return 2;
}
