/*
 * An IPAM plugin of somebody else: gives every ADD the same address, and writes a line for each call to
 * the file that FOREIGN_LOG names: verb, container, bytes of configuration.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(void) {
    static char block[65536];
    size_t bytes = 0, got;
    const char *verb = getenv("CNI_COMMAND"), *log = getenv("FOREIGN_LOG");
    while ((got = fread(block, 1, sizeof block, stdin)) > 0) bytes += got;
    FILE *file = log == NULL ? NULL : fopen(log, "a");
    if (verb == NULL || file == NULL) return 1;
    fprintf(file, "%s %s %u\n", verb, getenv("CNI_CONTAINERID"), (unsigned)bytes);
    fclose(file);
    if (strcmp(verb, "ADD") == 0) printf("{\"cniVersion\":\"1.0.0\",\"ips\":[{\"address\":\"10.44.0.5/24\"}]}");
    return 0;
}
