/*
 * hold-lock PATH FIRST LENGTH exclusive|shared: has these bytes of the file locked, as Go's file mutex
 * and SQLite lock on Windows, says "locked", and keeps them until its input ends.
 */
#include <windows.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
    OVERLAPPED where = {0};
    if (argc != 5) return 2;
    where.Offset = strtoul(argv[2], NULL, 0);
    HANDLE file = CreateFileA(argv[1], GENERIC_READ | GENERIC_WRITE, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE,
                              NULL, OPEN_ALWAYS, FILE_ATTRIBUTE_NORMAL, NULL);
    DWORD flags = strcmp(argv[4], "shared") == 0 ? 0 : LOCKFILE_EXCLUSIVE_LOCK;
    if (!LockFileEx(file, flags, 0, strtoul(argv[3], NULL, 0), 0, &where)) return 1;
    puts("locked");
    fflush(stdout);
    while (getchar() != EOF) {}
    return 0;
}
