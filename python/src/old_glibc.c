/*
 * Functions that glibc has since 2.33, for modules that run with older ones too: there the header
 * called __xstat. On x86-64 and AArch64 the struct is version 1 and 0.
 */
#include <sys/stat.h>

#ifdef __x86_64__
enum { STRUCT_VERSION = 1 };
#else
enum { STRUCT_VERSION = 0 };
#endif

int __xstat(int version, const char *path, struct stat *status);
int __fxstat(int version, int descriptor, struct stat *status);

int stat(const char *restrict path, struct stat *restrict status)
{
    return __xstat(STRUCT_VERSION, path, status);
}

int fstat(int descriptor, struct stat *status)
{
    return __fxstat(STRUCT_VERSION, descriptor, status);
}
