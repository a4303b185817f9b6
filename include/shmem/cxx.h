/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxx.h - C++ only: the complex reductions and scans for arrays of C's _Complex, which g++ and clang++ have as
 * an extension; those of api.h take std::complex.  Included by shmem.h.
 */
#ifndef SHMEM_CXX_H
#define SHMEM_CXX_H

#if defined(__GNUC__) && !defined(__CUDACC__)

#define SHMEMI_CXX_TEAM(NAME, OP, FROM, TO)                                                            \
    static inline int shmem_##NAME##_##OP(shmem_team_t team, FROM *dest, const FROM *source, size_t n)  \
    {                                                                                                  \
        return shmem_##NAME##_##OP(team, reinterpret_cast<TO *>(dest),                                 \
                                   reinterpret_cast<const TO *>(source), n);                           \
    }
#define SHMEMI_CXX_SET(NAME, OP, FROM, TO)                                                             \
    static inline void shmem_##NAME##_##OP(FROM *dest, const FROM *source, int nreduce, int PE_start,   \
                                           int logPE_stride, int PE_size, FROM *pWrk, long *pSync)      \
    {                                                                                                  \
        shmem_##NAME##_##OP(reinterpret_cast<TO *>(dest), reinterpret_cast<const TO *>(source),        \
                            nreduce, PE_start, logPE_stride, PE_size,                                  \
                            reinterpret_cast<TO *>(pWrk), pSync);                                      \
    }
#define SHMEMI_CXX_COMPLEX(NAME, FROM, TO)      \
    SHMEMI_CXX_TEAM(NAME, sum_reduce, FROM, TO)  \
    SHMEMI_CXX_TEAM(NAME, prod_reduce, FROM, TO) \
    SHMEMI_CXX_TEAM(NAME, sum_inscan, FROM, TO)  \
    SHMEMI_CXX_TEAM(NAME, sum_exscan, FROM, TO)  \
    SHMEMI_CXX_SET(NAME, sum_to_all, FROM, TO)   \
    SHMEMI_CXX_SET(NAME, prod_to_all, FROM, TO)

__extension__ typedef float _Complex shmemi_c99_complexf;
__extension__ typedef double _Complex shmemi_c99_complexd;
SHMEMI_CXX_COMPLEX(complexf, shmemi_c99_complexf, shmemi_complexf)
SHMEMI_CXX_COMPLEX(complexd, shmemi_c99_complexd, shmemi_complexd)

#undef SHMEMI_CXX_COMPLEX
#undef SHMEMI_CXX_SET
#undef SHMEMI_CXX_TEAM

#endif

#endif
