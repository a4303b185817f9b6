# SPDX-License-Identifier: BSD-3-Clause
# shmemi_base.m4 - machine checks, relocatable directories, the summary.

# SHMEMI_MACHINE: 64-bit Linux with 8-byte lock-free atomics; anything else is refused here and not later.
AC_DEFUN([SHMEMI_MACHINE], [
AS_CASE([$host_os], [linux*], [],
    [AC_MSG_ERROR([Marrow needs Linux (memfd, futex); this host is $host])])
AC_CACHE_CHECK([for lock-free 8-byte atomics], [shmemi_cv_atomics],
    [AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[#include <stdint.h>]],
        [[uint64_t v = 0;
          switch (0) { case 0: case __atomic_always_lock_free(8, 0) && sizeof(void *) == 8: break; }
          return (int)__atomic_fetch_add(&v, 1, __ATOMIC_ACQ_REL);]])],
        [shmemi_cv_atomics=yes], [shmemi_cv_atomics=no])])
AS_IF([test "$shmemi_cv_atomics" != yes],
    [AC_MSG_ERROR([Marrow needs a 64-bit machine and a compiler with GNU atomics])])
AC_CACHE_CHECK([for linker version scripts], [shmemi_cv_version_script],
    [echo 'T_1 { global: main; local: *; };' > conftest.map
     shmemi_save_LDFLAGS=$LDFLAGS
     LDFLAGS="$LDFLAGS -Wl,--version-script=conftest.map"
     AC_LINK_IFELSE([AC_LANG_PROGRAM([], [])],
        [shmemi_cv_version_script=yes], [shmemi_cv_version_script=no])
     LDFLAGS=$shmemi_save_LDFLAGS
     rm -f conftest.map])
AM_CONDITIONAL([HAVE_VERSION_SCRIPT], [test "$shmemi_cv_version_script" = yes])
AC_SEARCH_LIBS([dlopen], [dl])
AC_SEARCH_LIBS([pthread_create], [pthread])
])

# SHMEMI_RELDIR(FROM, TO, VAR): VAR = path from directory FROM to directory TO when both
# lie under $prefix, else TO itself.
AC_DEFUN([SHMEMI_RELDIR], [
shmemi_from=`eval echo "[$]$1"`; shmemi_from=`eval echo "$shmemi_from"`
shmemi_to=`eval echo "[$]$2"`; shmemi_to=`eval echo "$shmemi_to"`
AS_CASE([$shmemi_from], [$prefix/*], [
    AS_CASE([$shmemi_to], [$prefix/*], [
        shmemi_up=`AS_ECHO(["$shmemi_from"]) | sed -e "s|^$prefix/||" -e 's|[[^/]][[^/]]*|..|g'`
        shmemi_to=$shmemi_up/`AS_ECHO(["$shmemi_to"]) | sed -e "s|^$prefix/||"`
    ])
])
$3=$shmemi_to
AC_SUBST([$3])
])

# SHMEMI_RELATIVE_DIRS: libdir and includedir as seen from bindir and from pkgconfig.
AC_DEFUN([SHMEMI_RELATIVE_DIRS], [
shmemi_save_prefix=$prefix; shmemi_save_exec_prefix=$exec_prefix
AS_IF([test "x$prefix" = xNONE], [prefix=$ac_default_prefix])
AS_IF([test "x$exec_prefix" = xNONE], [exec_prefix=$prefix])
pkgconfigdir='${libdir}/pkgconfig'
cmakedir='${libdir}/cmake/Marrow'
AC_SUBST([pkgconfigdir])
AC_SUBST([cmakedir])
SHMEMI_RELDIR([bindir], [libdir], [BIN_TO_LIB])
SHMEMI_RELDIR([bindir], [includedir], [BIN_TO_INCLUDE])
SHMEMI_RELDIR([pkgconfigdir], [libdir], [PC_TO_LIB])
SHMEMI_RELDIR([pkgconfigdir], [includedir], [PC_TO_INCLUDE])
SHMEMI_RELDIR([cmakedir], [libdir], [CMAKE_TO_LIB])
SHMEMI_RELDIR([cmakedir], [includedir], [CMAKE_TO_INCLUDE])
AS_CASE([$PC_TO_LIB], [/*], [], [PC_TO_LIB='%D/'$PC_TO_LIB])
AS_CASE([$PC_TO_INCLUDE], [/*], [], [PC_TO_INCLUDE='%D/'$PC_TO_INCLUDE])
AS_CASE([$CMAKE_TO_LIB], [/*], [], [CMAKE_TO_LIB='%D/'$CMAKE_TO_LIB])
AS_CASE([$CMAKE_TO_INCLUDE], [/*], [], [CMAKE_TO_INCLUDE='%D/'$CMAKE_TO_INCLUDE])
prefix=$shmemi_save_prefix; exec_prefix=$shmemi_save_exec_prefix
])

# SHMEMI_SUMMARY: what was found, at the end of configure.
AC_DEFUN([SHMEMI_SUMMARY], [
shmemi_prefix=$prefix
AS_IF([test "x$shmemi_prefix" = xNONE], [shmemi_prefix=$ac_default_prefix])
cat <<_SUMMARY

marrow $PACKAGE_VERSION for $host
  prefix       $shmemi_prefix
  compilers    $CC, $CXX (CFLAGS $CFLAGS)
  sanitizers   $shmemi_sanitizers
  PMIx         $shmemi_pmix_says
  hwloc        $shmemi_hwloc_says
  verbs        $shmemi_verbs_says
  CUDA         $shmemi_cuda_says
  nvcc         $shmemi_nvcc_says
  unit tests   $shmemi_check_says

_SUMMARY
])
