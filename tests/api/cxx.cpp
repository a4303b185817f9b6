// SPDX-License-Identifier: BSD-3-Clause
/*
 * cxx.cpp - the library from C++: handles, names, and both kinds of complex numbers.
 *
 * run: n=1,2,3 launch=oshrun timeout=60
 */
#include <shmem.h>
#include <shmemx.h>

#include <complex>
#include <cstdio>

static std::complex<double> sum_of[2], mine[2];
static std::complex<float> product_of[1], factor[1];
__extension__ typedef double _Complex c99_complex;
static c99_complex c99_sum[1], c99_mine[1];
static long word;
static shmem_ctx_t ctx = SHMEM_CTX_DEFAULT;
static const shmem_team_t world = SHMEM_TEAM_WORLD;

static int check(bool good, int point, const char *what)
{
    static int votes, vote;

    vote = good ? 0 : 1;
    shmem_int_sum_reduce(world, &votes, &vote, 1);
    if (shmem_my_pe() == 0)
        std::printf("%sok %d - %s\n", votes ? "not " : "", point, what);
    return votes;
}

static bool near(double a, double b)
{
    return a - b < 1e-5 && b - a < 1e-5;
}

int main()
{
    int bad = 0;

    shmem_init();
    const int me = shmem_my_pe(), n = shmem_n_pes();
    const double total = n * (n + 1) / 2.0;

    mine[0] = std::complex<double>(me + 1, 1);
    mine[1] = -mine[0];
    shmem_complexd_sum_reduce(world, sum_of, mine, 2);
    bad += check(near(sum_of[0].real(), total) && near(sum_of[0].imag(), n) && sum_of[1] == -sum_of[0], 1,
                 "a sum of std::complex");

    factor[0] = std::complex<float>(0, 1);
    shmem_complexf_prod_reduce(world, product_of, factor, 1);
    std::complex<float> want(1, 0);
    for (int i = 0; i < n; i++)
        want *= factor[0];
    bad += check(near(product_of[0].real(), want.real()) && near(product_of[0].imag(), want.imag()), 2,
                 "a product of std::complex");

    __real__ c99_mine[0] = me + 1;
    __imag__ c99_mine[0] = -1;
    shmem_complexd_sum_reduce(world, c99_sum, c99_mine, 1);
    bad += check(near(__real__ c99_sum[0], total) && near(__imag__ c99_sum[0], -n), 3, "a sum of _Complex");

    shmem_ctx_long_p(ctx, &word, me + 1, (me + 1) % n);
    shmem_barrier_all();
    bad += check(word == (me + n - 1) % n + 1, 4, "a put");
    bad += check(shmemx_wtime() > 0, 5, "an extension");
    if (me == 0)
        std::printf("1..5\n");
    shmem_finalize();
    return bad != 0;
}
