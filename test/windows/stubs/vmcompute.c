/* vmcompute.dll: the older interface, which is one function. */
#include <windows.h>

__declspec(dllimport) HRESULT WINAPI StubHnsCall(PCWSTR method, PCWSTR path, PCWSTR object, PWSTR *response);

__declspec(dllexport) HRESULT WINAPI HNSCall(PCWSTR method, PCWSTR path, PCWSTR object, PWSTR *response) {
    return StubHnsCall(method, path, object, response);
}
