/* The least that a program for Windows can be. */
int main(void) { return 0; }
