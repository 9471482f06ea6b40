/*
 * For the tests of the stubs: calls the real import library's functions, as any program of Windows does.
 *   driver leak|clean    a network and an endpoint; "leak" forgets a handle and a string
 */
#include <windows.h>
#include <objbase.h>
#include <computenetwork.h>
#include <stdio.h>
#include <string.h>

static void say(const char *what, HRESULT status, PWSTR text) {
    char line[4096] = "-";
    if (text != NULL) WideCharToMultiByte(CP_UTF8, 0, text, -1, line, sizeof line, NULL, NULL);
    printf("%s %08lx %s\n", what, (unsigned long)status, line);
}

int main(int argc, char **argv) {
    int leaks = argc > 1 && strcmp(argv[1], "leak") == 0;
    GUID network_id = {0x11111111, 0x2222, 0x3333, {0x44, 0x44, 0x55, 0x55, 0x55, 0x55, 0x55, 0x55}}, none = {0};
    HCN_NETWORK network = NULL;
    HCN_ENDPOINT endpoint = NULL, second = NULL;
    PWSTR error = NULL, list = NULL;
    HRESULT status = HcnCreateNetwork(&network_id,
        L"{\"Name\":\"n\u00fc\",\"Type\":\"L2Bridge\",\"Policies\":[{\"Type\":\"NetAdapterName\",\"Settings\":{\"NetworkAdapterName\":\"Ethernet\"}}],"
        L"\"Ipams\":[{\"Type\":\"Static\",\"Subnets\":[{\"IpAddressPrefix\":\"10.9.0.0/24\",\"Routes\":[{\"NextHop\":\"10.9.0.1\",\"DestinationPrefix\":\"0.0.0.0/0\"}]}]}],"
        L"\"SchemaVersion\":{\"Major\":2,\"Minor\":0}}", &network, &error);
    say("network", status, error);
    for (int i = 0; i < 2; i++) {
        status = HcnCreateEndpoint(network, &none,
            L"{\"Name\":\"e\",\"HostComputeNetwork\":\"11111111-2222-3333-4444-555555555555\",\"IpConfigurations\":[{\"IpAddress\":\"10.9.0.7\"}],"
            L"\"SchemaVersion\":{\"Major\":2,\"Minor\":0}}", i == 0 ? &endpoint : &second, &error);
        say("endpoint", status, error);
        if (i == 1 && !leaks) CoTaskMemFree(error);
        if (i == 0 && !leaks) HcnCloseEndpoint(endpoint);
    }
    status = HcnEnumerateEndpoints(L"{\"SchemaVersion\":{\"Major\":2,\"Minor\":0},\"Filter\":\"{\\\"Name\\\":\\\"e\\\"}\"}", &list, &error);
    say("list", status, list);
    CoTaskMemFree(list);
    fflush(stdout);
    if (!leaks) HcnCloseNetwork(network);
    HcnDeleteNetwork(&none, &error);
    say("delete", 0, error);
    CoTaskMemFree(error);
    getchar();
    return 0;
}
