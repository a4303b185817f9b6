# SPDX-License-Identifier: BSD-3-Clause
# shmemi_warn.m4 - warning and sanitizer flags, each probed with the compiler at hand.

# SHMEMI_ADD_FLAG(VAR, FLAG): appends FLAG to VAR when the C compiler takes it without a word.
AC_DEFUN([SHMEMI_ADD_FLAG], [
AS_VAR_PUSHDEF([shmemi_flag], [shmemi_cv_flag_$2])
AC_CACHE_CHECK([whether $CC takes $2], [shmemi_flag], [
    shmemi_save_CFLAGS=$CFLAGS
    CFLAGS="$CFLAGS -Werror $2"
    AC_COMPILE_IFELSE([AC_LANG_PROGRAM([], [])],
        [AS_VAR_SET([shmemi_flag], [yes])], [AS_VAR_SET([shmemi_flag], [no])])
    CFLAGS=$shmemi_save_CFLAGS
])
AS_VAR_IF([shmemi_flag], [yes], [$1="$$1 $2"])
AS_VAR_POPDEF([shmemi_flag])
])

# SHMEMI_WARNINGS: WARN_CFLAGS, and VISIBILITY_CFLAGS for the library.
AC_DEFUN([SHMEMI_WARNINGS], [
AC_ARG_ENABLE([werror],
    [AS_HELP_STRING([--enable-werror], [make every warning an error (for developers)])],
    [], [enable_werror=no])
STD_CFLAGS=
SHMEMI_ADD_FLAG([STD_CFLAGS], [-std=gnu11])
WARN_CFLAGS=
SHMEMI_ADD_FLAG([WARN_CFLAGS], [-Wall])
SHMEMI_ADD_FLAG([WARN_CFLAGS], [-Wextra])
SHMEMI_ADD_FLAG([WARN_CFLAGS], [-Wshadow])
SHMEMI_ADD_FLAG([WARN_CFLAGS], [-Wvla])
SHMEMI_ADD_FLAG([WARN_CFLAGS], [-Wundef])
SHMEMI_ADD_FLAG([WARN_CFLAGS], [-Wstrict-prototypes])
SHMEMI_ADD_FLAG([WARN_CFLAGS], [-Wwrite-strings])
SHMEMI_ADD_FLAG([WARN_CFLAGS], [-Wpointer-arith])
AS_IF([test "$enable_werror" = yes], [WARN_CFLAGS="$WARN_CFLAGS -Werror"])
VISIBILITY_CFLAGS=
SHMEMI_ADD_FLAG([VISIBILITY_CFLAGS], [-fvisibility=hidden])
AC_SUBST([STD_CFLAGS])
AC_SUBST([WARN_CFLAGS])
AC_SUBST([VISIBILITY_CFLAGS])
])

# SHMEMI_SANITIZER(NAME, GROUP, FLAG): --enable-NAME adds -fsanitize=GROUP or fails.
AC_DEFUN([SHMEMI_SANITIZER], [
AC_ARG_ENABLE([$1],
    [AS_HELP_STRING([--enable-$1], [build with -fsanitize=$2])], [], [enable_$1=no])
AS_IF([test "$enable_$1" = yes], [
    shmemi_save_CFLAGS=$CFLAGS
    CFLAGS="$CFLAGS -fsanitize=$2"
    AC_LINK_IFELSE([AC_LANG_PROGRAM([], [])], [],
        [AC_MSG_ERROR([--enable-$1: $CC cannot link with -fsanitize=$2 (is its runtime library installed?)])])
    CFLAGS=$shmemi_save_CFLAGS
    SANITIZE_FLAGS="$SANITIZE_FLAGS -fsanitize=$2 $3"
    shmemi_sanitizers="$shmemi_sanitizers $2"
])
])

AC_DEFUN([SHMEMI_SANITIZERS], [
SANITIZE_FLAGS=
shmemi_sanitizers=
SHMEMI_SANITIZER([asan], [address], [-fno-omit-frame-pointer])
SHMEMI_SANITIZER([ubsan], [undefined], [-fno-sanitize-recover=undefined])
SHMEMI_SANITIZER([tsan], [thread], [])
AS_IF([test "$enable_asan$enable_tsan" = yesyes],
    [AC_MSG_ERROR([--enable-asan and --enable-tsan exclude each other])])
AS_IF([test -z "$shmemi_sanitizers"], [shmemi_sanitizers=none])
SANITIZERS=`AS_ECHO(["$shmemi_sanitizers"]) | sed 's/^ //'`
AC_SUBST([SANITIZERS])
AC_SUBST([SANITIZE_FLAGS])
AM_CONDITIONAL([SANITIZED], [test -n "$SANITIZE_FLAGS"])
])
