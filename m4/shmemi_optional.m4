# SPDX-License-Identifier: BSD-3-Clause
# shmemi_optional.m4 - PMIx, hwloc, verbs, CUDA, Check: found or left out.
#
# The library links none of them: it opens what it needs at run time (dlopen), so one build runs with or without them.
# Its module for the NIC, which it opens too, is linked with verbs and hwloc.

# SHMEMI_OPTIONAL(NAME, TEXT, DEFINE, HEADER, PKGCONFIG, CONDITION)
# --with-NAME[=DIR] / --without-NAME; CONDITION is a constant of the header that must hold.  Sets DEFINE in config.h, NAME_CPPFLAGS,
# shmemi_NAME_says, and the automake conditional DEFINE.
AC_DEFUN([SHMEMI_OPTIONAL], [
AC_ARG_WITH([$1],
    [AS_HELP_STRING([--with-$1@<:@=DIR@:>@], [$2; DIR is its prefix @<:@default: if found@:>@])],
    [], [with_$1=check])
shmemi_have=no
m4_toupper($1)_CPPFLAGS=
AS_IF([test "$with_$1" = no], [shmemi_$1_says="left out (--without-$1)"], [
    AS_CASE([$with_$1],
        [yes|check], [
            m4_ifval([$5], [AS_IF([test -n "$PKG_CONFIG"],
                [m4_toupper($1)_CPPFLAGS=`$PKG_CONFIG --cflags-only-I $5 2>/dev/null`])])
            AS_IF([test -n "$shmemi_$1_dir"], [m4_toupper($1)_CPPFLAGS="-I$shmemi_$1_dir/include"])],
        [m4_toupper($1)_CPPFLAGS="-I$with_$1/include"])
    shmemi_save_CPPFLAGS=$CPPFLAGS
    CPPFLAGS="$CPPFLAGS $m4_toupper($1)_CPPFLAGS"
    AC_MSG_CHECKING([for $4])
    AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[#include <$4>]],
        [[enum { ok = 1 / (($6) ? 1 : 0) }; return ok;]])], [shmemi_have=yes])
    AC_MSG_RESULT([$shmemi_have])
    CPPFLAGS=$shmemi_save_CPPFLAGS
    AS_IF([test $shmemi_have = yes], [
        AC_DEFINE([$3], [1], [Define to 1 if $4 can be used.])
        shmemi_$1_says="yes"
    ], [
        AS_IF([test "$with_$1" != check],
            [AC_MSG_ERROR([--with-$1: cannot compile with <$4>; give its prefix with --with-$1=DIR or leave it out with --without-$1])])
        m4_toupper($1)_CPPFLAGS=
        shmemi_$1_says="left out (no usable <$4>)"
    ])
])
AC_SUBST(m4_toupper($1)[_CPPFLAGS])
AM_CONDITIONAL([$3], [test $shmemi_have = yes])
])

# SHMEMI_LIBS(NAME, PKGCONFIG, LIBS): NAME_LIBS, what a module of ours that needs NAME links with.
AC_DEFUN([SHMEMI_LIBS], [
m4_toupper($1)_LIBS="$3"
AS_CASE([$with_$1],
    [yes|check|no], [AS_IF([test -n "$PKG_CONFIG" && $PKG_CONFIG --exists "$2" 2>/dev/null],
        [m4_toupper($1)_LIBS="`$PKG_CONFIG --libs-only-L $2 2>/dev/null` $3"])],
    [m4_toupper($1)_LIBS="-L$with_$1/lib $3"])
AC_SUBST(m4_toupper($1)[_LIBS])
])

AC_DEFUN([SHMEMI_PMIX], [
AC_CHECK_PROGS([PKG_CONFIG], [pkg-config pkgconf])
SHMEMI_OPTIONAL([pmix], [launch by PMIx: mpirun, srun --mpi=pmix], [HAVE_PMIX], [pmix.h], [pmix],
    [PMIX_VERSION_MAJOR >= 3])
AS_IF([test "$shmemi_pmix_says" = yes], [
    PMIX_LIBDIR=
    AS_CASE([$with_pmix], [yes|check],
        [AS_IF([test -n "$PKG_CONFIG"], [PMIX_LIBDIR=`$PKG_CONFIG --variable=libdir pmix 2>/dev/null`])],
        [PMIX_LIBDIR=$with_pmix/lib])
    AC_DEFINE_UNQUOTED([SHMEMI_PMIX_LIBDIR], ["$PMIX_LIBDIR"],
        [Where libpmix.so.2 lay when this was configured: tried when the loader does not find it.])
    shmemi_pmix_says="yes, opened at run time${PMIX_LIBDIR:+ (also tried: $PMIX_LIBDIR)}"
])
])

AC_DEFUN([SHMEMI_HWLOC], [
SHMEMI_OPTIONAL([hwloc], [topology by hwloc], [HAVE_HWLOC], [hwloc.h], [hwloc],
    [HWLOC_API_VERSION >= 0x00020000])
SHMEMI_LIBS([hwloc], [hwloc], [-lhwloc])
])

AC_DEFUN([SHMEMI_VERBS], [
SHMEMI_OPTIONAL([verbs], [InfiniBand verbs and mlx5 direct access], [HAVE_VERBS],
    [infiniband/mlx5dv.h], [libmlx5], [MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE])
SHMEMI_LIBS([verbs], [libmlx5 libibverbs], [-lmlx5 -libverbs])
AC_CHECK_DECLS([MLX5DV_UMEM_MASK_DMABUF], [], [], [[#include <infiniband/mlx5dv.h>]])
])

# CUDA's toolkit seldom has a pkg-config file: look in the usual places.
AC_DEFUN([SHMEMI_CUDA], [
shmemi_cuda_dir=
for shmemi_dir in "$CUDA_HOME" /usr/local/cuda; do
    AS_IF([test -z "$shmemi_cuda_dir" && test -f "$shmemi_dir/include/cuda.h"],
        [shmemi_cuda_dir=$shmemi_dir])
done
SHMEMI_OPTIONAL([cuda], [CUDA driver API], [HAVE_CUDA], [cuda.h], [],
    [CUDA_VERSION >= 12000])
])

# Check is for the unit tests only.
AC_DEFUN([SHMEMI_CHECK], [
shmemi_check_says="left out (Check is not installed)"
shmemi_have=no
AS_IF([test -n "$PKG_CONFIG" && $PKG_CONFIG --exists 'check >= 0.12' 2>/dev/null], [
    CHECK_CFLAGS=`$PKG_CONFIG --cflags check`
    CHECK_LIBS=`$PKG_CONFIG --libs check`
    shmemi_have=yes
    shmemi_check_says="yes (Check `$PKG_CONFIG --modversion check`)"
])
AC_SUBST([CHECK_CFLAGS])
AC_SUBST([CHECK_LIBS])
AM_CONDITIONAL([HAVE_CHECK], [test $shmemi_have = yes])
AC_CHECK_PROGS([TIMEOUT], [timeout])
AC_ARG_VAR([MPIRUN], [mpirun that the multi-PE tests use; "no": none])
AS_IF([test -z "$MPIRUN"], [AC_CHECK_PROGS([MPIRUN], [mpirun], [no])])
])
