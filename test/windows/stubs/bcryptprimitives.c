/*
 * Bun takes its random bytes from a library that Wine 8 lacks; without it the executable ends with
 * status 53 and says nothing. Windows has it since version 10.
 */
#include <windows.h>

/* What advapi32 exports for RtlGenRandom. */
BOOLEAN NTAPI SystemFunction036(PVOID buffer, ULONG length);

__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE data, SIZE_T length) {
    return SystemFunction036(data, (ULONG)length);
}
