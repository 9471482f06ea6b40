/*
 * computenetwork.dll and vmcompute.dll in one: every function hands its arguments to the test's service
 * and gives back what that answers. Strings are allocated as Windows does it, and those that the caller
 * has not freed yet are counted and told with each call. Handles are the service's numbers.
 */
#define COBJMACROS
#include "channel.h"
#include <objbase.h>
#include <stdio.h>
#include <stdlib.h>

#define SERVICE_AWAY ((HRESULT)0x800706BA)
#define SERVICE_LEFT ((HRESULT)0x800706BE)
#define EXPORT __declspec(dllexport) HRESULT WINAPI

typedef void *HANDLE_OF_HCN;

static CRITICAL_SECTION lock;
static INIT_ONCE once = INIT_ONCE_STATIC_INIT;

/* --- strings that were given out --- */

#define MOST_STRINGS 4096
static void *given_out[MOST_STRINGS];
static unsigned int given_out_count;

static HRESULT WINAPI spy_query(IMallocSpy *spy, REFIID id, void **object) {
    *object = spy;
    return S_OK;
}
static ULONG WINAPI spy_add_ref(IMallocSpy *spy) { return 2; }
static ULONG WINAPI spy_release(IMallocSpy *spy) { return 1; }
static SIZE_T WINAPI spy_pre_alloc(IMallocSpy *spy, SIZE_T size) { return size; }
static void *WINAPI spy_post_alloc(IMallocSpy *spy, void *memory) { return memory; }
static void *WINAPI spy_pre_free(IMallocSpy *spy, void *memory, BOOL spied) {
    EnterCriticalSection(&lock);
    for (unsigned int i = 0; i < given_out_count; i++)
        if (given_out[i] == memory) given_out[i] = given_out[--given_out_count];
    LeaveCriticalSection(&lock);
    return memory;
}
static void WINAPI spy_post_free(IMallocSpy *spy, BOOL spied) {}
static SIZE_T WINAPI spy_pre_realloc(IMallocSpy *spy, void *memory, SIZE_T size, void **to, BOOL spied) {
    *to = memory;
    return size;
}
static void *WINAPI spy_post_realloc(IMallocSpy *spy, void *memory, BOOL spied) { return memory; }
static void *WINAPI spy_pre_get_size(IMallocSpy *spy, void *memory, BOOL spied) { return memory; }
static SIZE_T WINAPI spy_post_get_size(IMallocSpy *spy, SIZE_T size, BOOL spied) { return size; }
static void *WINAPI spy_pre_did_alloc(IMallocSpy *spy, void *memory, BOOL spied) { return memory; }
static int WINAPI spy_post_did_alloc(IMallocSpy *spy, void *memory, BOOL spied, int actual) { return actual; }
static void WINAPI spy_pre_minimize(IMallocSpy *spy) {}
static void WINAPI spy_post_minimize(IMallocSpy *spy) {}

static IMallocSpyVtbl spy_functions = {
    spy_query,        spy_add_ref,      spy_release,       spy_pre_alloc,      spy_post_alloc,   spy_pre_free,
    spy_post_free,    spy_pre_realloc,  spy_post_realloc,  spy_pre_get_size,   spy_post_get_size, spy_pre_did_alloc,
    spy_post_did_alloc, spy_pre_minimize, spy_post_minimize,
};
static IMallocSpy spy = {&spy_functions};

static void give_out(wchar_t **to, wchar_t *text) {
    if (text == NULL) return;
    if (to != NULL) {
        size_t bytes = (wcslen(text) + 1) * sizeof *text;
        *to = CoTaskMemAlloc(bytes);
        memcpy(*to, text, bytes);
        EnterCriticalSection(&lock);
        if (given_out_count < MOST_STRINGS) given_out[given_out_count++] = *to;
        LeaveCriticalSection(&lock);
    }
    free(text);
}

/* --- one call --- */

static BOOL CALLBACK begin(INIT_ONCE *ignored, void *parameter, void **context) {
    InitializeCriticalSection(&lock);
    CoRegisterMallocSpy(&spy);
    show_life();
    return TRUE;
}

typedef struct {
    const char *function;
    HANDLE_OF_HCN handle;
    const GUID *id;
    const wchar_t *texts[3];
    HANDLE_OF_HCN *new_handle;
    wchar_t **result;
    wchar_t **error;
} Call;

static void put_guid(Message *message, const GUID *id) {
    wchar_t text[40];
    if (id == NULL) {
        put_wide(message, NULL);
        return;
    }
    StringFromGUID2(id, text, 40);
    text[37] = 0; /* without its braces */
    put_wide(message, text + 1);
}

static HRESULT perform(const Call *call) {
    InitOnceExecuteOnce(&once, begin, NULL, NULL);
    Message request = {0}, answer = {0};
    put_text(&request, "hcn");
    put_number(&request, GetCurrentProcessId());
    put_number(&request, GetCurrentThreadId());
    put_number(&request, given_out_count);
    put_text(&request, call->function);
    put_number(&request, (ULONG_PTR)call->handle);
    put_guid(&request, call->id);
    for (int i = 0; i < 3; i++) put_wide(&request, call->texts[i]);
    if (call->new_handle != NULL) *call->new_handle = NULL;
    if (call->result != NULL) *call->result = NULL;
    if (call->error != NULL) *call->error = NULL;
    Outcome outcome = exchange(&request, &answer);
    if (outcome != ANSWERED) {
        free(answer.data);
        return outcome == NOBODY_THERE ? SERVICE_AWAY : SERVICE_LEFT;
    }
    size_t at = 0;
    HRESULT status = (HRESULT)take_number(&answer, &at);
    ULONG_PTR handle = (ULONG_PTR)take_number(&answer, &at);
    if (call->new_handle != NULL) *call->new_handle = (HANDLE_OF_HCN)handle;
    give_out(call->result, take_wide(&answer, &at));
    give_out(call->error, take_wide(&answer, &at));
    free(answer.data);
    return status;
}

/* --- the functions; those for networks, endpoints, namespaces and load balancers differ in name only --- */

#define EACH_KIND(One, Many)                                                                                           \
    EXPORT HcnEnumerate##Many(PCWSTR query, PWSTR *list, PWSTR *error) {                                               \
        return perform(&(Call){"HcnEnumerate" #Many, .texts = {query}, .result = list, .error = error});               \
    }                                                                                                                  \
    EXPORT HcnOpen##One(const GUID *id, HANDLE_OF_HCN *handle, PWSTR *error) {                                         \
        return perform(&(Call){"HcnOpen" #One, .id = id, .new_handle = handle, .error = error});                       \
    }                                                                                                                  \
    EXPORT HcnModify##One(HANDLE_OF_HCN handle, PCWSTR settings, PWSTR *error) {                                       \
        return perform(&(Call){"HcnModify" #One, handle, .texts = {settings}, .error = error});                        \
    }                                                                                                                  \
    EXPORT HcnQuery##One##Properties(HANDLE_OF_HCN handle, PCWSTR query, PWSTR *properties, PWSTR *error) {            \
        return perform(                                                                                                \
            &(Call){"HcnQuery" #One "Properties", handle, .texts = {query}, .result = properties, .error = error});    \
    }                                                                                                                  \
    EXPORT HcnDelete##One(const GUID *id, PWSTR *error) {                                                              \
        return perform(&(Call){"HcnDelete" #One, .id = id, .error = error});                                           \
    }                                                                                                                  \
    EXPORT HcnClose##One(HANDLE_OF_HCN handle) { return perform(&(Call){"HcnClose" #One, handle}); }

#define CREATE(One)                                                                                                    \
    EXPORT HcnCreate##One(const GUID *id, PCWSTR settings, HANDLE_OF_HCN *handle, PWSTR *error) {                      \
        return perform(                                                                                                \
            &(Call){"HcnCreate" #One, .id = id, .texts = {settings}, .new_handle = handle, .error = error});           \
    }

EACH_KIND(Network, Networks)
EACH_KIND(Endpoint, Endpoints)
EACH_KIND(Namespace, Namespaces)
EACH_KIND(LoadBalancer, LoadBalancers)
CREATE(Network)
CREATE(Namespace)
CREATE(LoadBalancer)

EXPORT HcnCreateEndpoint(HANDLE_OF_HCN network, const GUID *id, PCWSTR settings, HANDLE_OF_HCN *handle, PWSTR *error) {
    return perform(
        &(Call){"HcnCreateEndpoint", network, id, {settings}, .new_handle = handle, .error = error});
}

/* For vmcompute.dll. */
EXPORT StubHnsCall(PCWSTR method, PCWSTR path, PCWSTR object, PWSTR *response) {
    return perform(&(Call){"HNSCall", .texts = {method, path, object}, .result = response});
}
