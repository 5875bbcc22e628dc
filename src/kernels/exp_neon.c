#include "kernels.h"

//== the exponential function for NEON =================================================================================
//
//  With few instructions: in NEON, the instruction for a * b + c overwrites c, so that each constant c has to be copied
//  first.  So the polynomials are sums of two parts, and 2^n is added to the exponent of the result.  This is right if
//  e^x and 2^n are normal numbers; the other elements are computed again.  Such elements are searched only if the sum
//  of the squares in a step is large.  In the mode of same bits, the function of the other processors is computed.

#if defined(OPDI_NEON) && !defined(OPD_NO_OPERATORS)
#define OPDI_EXP_NEON(type, lane) \
    OPDI_ALWAYS type opdi_exp_plus_##lane(type c, type a, type b) { /* c + a * b */ \
        __asm__("fmla %0." #lane ", %1." #lane ", %2." #lane : "+w"(c) : "w"(a), "w"(b)); \
        return c; \
    } \
    OPDI_ALWAYS type opdi_exp_minus_##lane(type c, type a, type b) { /* c - a * b */ \
        __asm__("fmls %0." #lane ", %1." #lane ", %2." #lane : "+w"(c) : "w"(a), "w"(b)); \
        return c; \
    } \
    OPDI_ALWAYS type opdi_exp_round_##lane(type a) { \
        __asm__("frintn %0." #lane ", %1." #lane : "=w"(a) : "w"(a)); \
        return a; \
    } \
    OPDI_ALWAYS opdi_v2w opdi_exp_integer_##lane(type a) { \
        opdi_v2w to; \
        __asm__("fcvtns %0." #lane ", %1." #lane : "=w"(to) : "w"(a)); \
        return to; \
    } \
    OPDI_ALWAYS opdi_v4u opdi_exp_within_##lane(type a, type limit) { /* all bits of the lanes with a <= limit */ \
        opdi_v4u to; \
        __asm__("fcmge %0." #lane ", %1." #lane ", %2." #lane : "=w"(to) : "w"(limit), "w"(a)); \
        return to; \
    }
OPDI_EXP_NEON(opdi_v4f, 4s)
OPDI_EXP_NEON(opdi_v2d, 2d)
#undef OPDI_EXP_NEON
#define OPDI_FOUR(x) (opdi_v4f){x, x, x, x}
#define OPDI_TWO(x) (opdi_v2d){x, x}
#define OPDI_EXP_STORE(y) ((y)[0] = y0, (y)[1] = y1, (y)[2] = y2, (y)[3] = y3)

/* Returns e^x for |x| <= 87: e^x = 2^n * e^r, see opdi_exp_less. */
OPDI_ALWAYS opdi_v4f opdi_exp_four(opdi_v4f x) {
    const opdi_v4f k = opdi_exp_round_4s(x * OPDI_FOUR(1.44269504f));
    opdi_v4f r = opdi_exp_minus_4s(x, k, OPDI_FOUR(0.693359375f));
    r = opdi_exp_plus_4s(r, k, OPDI_FOUR(2.12194442e-4f));
    const opdi_v4f square = r * r;
    opdi_v4f high = opdi_exp_plus_4s(OPDI_FOUR(0.041666206f), r, OPDI_FOUR(0.00836892892f));
    high = opdi_exp_plus_4s(high, square, OPDI_FOUR(0.00139505544f));
    opdi_v4f low = opdi_exp_plus_4s(OPDI_FOUR(0.5f), r, OPDI_FOUR(0.166665182f));
    low = opdi_exp_plus_4s(low, high, square);
    r = opdi_exp_plus_4s(r, low, square) + OPDI_FOUR(1.0f);
    return (opdi_v4f)((opdi_v4u)r + ((opdi_v4u)opdi_exp_integer_4s(k) << 23));
}
/* Sets out[i] to e^a[i] for i < count, a multiple of 16; out may be a. */
OPDI_INTERNAL void opdi_exp_neon_f32(int64_t count, float *out, const float *a) {
    if (opd_same_bits()) {
        for (int64_t i = 0; i < count; i++) { out[i] = opdi_exp1(1, a[i]); }
        return;
    }
    for (const float *const end = a + count; a < end; a += 16, out += 16) {
        const opdi_v4f *x = (const opdi_v4f *)(const void *)a, limit = OPDI_FOUR(87.0f * 87.0f);
        const opdi_v4f x0 = x[0], x1 = x[1], x2 = x[2], x3 = x[3];
        opdi_v4f *const y = (opdi_v4f *)(void *)out;
        const opdi_v4f sum = opdi_exp_plus_4s(opdi_exp_plus_4s(x0 * x0, x1, x1), x2, x2);
        opdi_v4u within = opdi_exp_within_4s(opdi_exp_plus_4s(sum, x3, x3), limit);
        const opdi_v4f y0 = opdi_exp_four(x0), y1 = opdi_exp_four(x1), y2 = opdi_exp_four(x2), y3 = opdi_exp_four(x3);
        __asm__("uminv %s0, %1.4s" : "=w"(within) : "w"(within));
        if (OPDI_LIKELY(within[0])) {
            OPDI_EXP_STORE(y);
            continue;
        }
        float from[16];
        __asm__("" : "+r"(x));                     /* reads the arguments again, so that they need no copies above */
        memcpy(from, x, sizeof from);
        OPDI_EXP_STORE(y);
        for (int j = 0; j < 16; j++) {
            if (!(fabsf(from[j]) <= 87.0f)) { out[j] = opdi_exp1(1, from[j]); }
        }
    }
}

/* 2^(i / 512), rounded, as an integer that is too small by i * 2^43: plus n * 2^43, it is 2^(n / 512) if n % 512 is
   i. */
static const uint64_t opdi_exp_powers[512] = {
    0x3ff0000000000000u, 0x3feffd8c86da1c0au, 0x3feffb1afa5abcbfu, 0x3feff8ab5b2cbd11u, 0x3feff63da9fb3335u,
    0x3feff3d1e77170b4u, 0x3feff168143b0281u, 0x3fefef003103b10eu, 0x3fefec9a3e778061u, 0x3fefea363d42b027u,
    0x3fefe7d42e11bbccu, 0x3fefe57411915a8au, 0x3fefe315e86e7f85u, 0x3fefe0b9b35659d8u, 0x3fefde5f72f654b1u,
    0x3fefdc0727fc1762u, 0x3fefd9b0d3158574u, 0x3fefd75c74f0bec2u, 0x3fefd50a0e3c1f89u, 0x3fefd2b99fa6407cu,
    0x3fefd06b29ddf6deu, 0x3fefce1ead925493u, 0x3fefcbd42b72a836u, 0x3fefc98ba42e7d30u, 0x3fefc74518759bc8u,
    0x3fefc50088f8093fu, 0x3fefc2bdf66607e0u, 0x3fefc07d61701716u, 0x3fefbe3ecac6f383u, 0x3fefbc02331b9715u,
    0x3fefb9c79b1f3919u, 0x3fefb78f03834e52u, 0x3fefb5586cf9890fu, 0x3fefb323d833d93fu, 0x3fefb0f145e46c85u,
    0x3fefaec0b6bdae53u, 0x3fefac922b7247f7u, 0x3fefaa65a4b520bau, 0x3fefa83b23395decu, 0x3fefa612a7b26300u,
    0x3fefa3ec32d3d1a2u, 0x3fefa1c7c55189c6u, 0x3fef9fa55fdfa9c5u, 0x3fef9d8503328e6du, 0x3fef9b66affed31bu,
    0x3fef994a66f951ceu, 0x3fef973028d7233eu, 0x3fef9517f64d9ef1u, 0x3fef9301d0125b51u, 0x3fef90edb6db2dc1u,
    0x3fef8edbab5e2ab6u, 0x3fef8ccbae51a5c8u, 0x3fef8abdc06c31ccu, 0x3fef88b1e264a0e9u, 0x3fef86a814f204abu,
    0x3fef84a058cbae1eu, 0x3fef829aaea92de0u, 0x3fef809717425438u, 0x3fef7e95934f312eu, 0x3fef7c962388149eu,
    0x3fef7a98c8a58e51u, 0x3fef789d83606e12u, 0x3fef76a45471c3c2u, 0x3fef74ad3c92df73u, 0x3fef72b83c7d517bu,
    0x3fef70c554eaea89u, 0x3fef6ed48695bbc0u, 0x3fef6ce5d23816c9u, 0x3fef6af9388c8deau, 0x3fef690eba4df41fu,
    0x3fef672658375d2fu, 0x3fef654013041dc2u, 0x3fef635beb6fcb75u, 0x3fef6179e2363cf8u, 0x3fef5f99f8138a1cu,
    0x3fef5dbc2dc40bf0u, 0x3fef5be084045cd4u, 0x3fef5a06fb91588fu, 0x3fef582f95281c6bu, 0x3fef565a51860746u,
    0x3fef54873168b9aau, 0x3fef52b6358e15e8u, 0x3fef50e75eb44027u, 0x3fef4f1aad999e82u, 0x3fef4d5022fcd91du,
    0x3fef4b87bf9cda38u, 0x3fef49c18438ce4du, 0x3fef47fd7190241eu, 0x3fef463b88628cd6u, 0x3fef447bc96ffc18u,
    0x3fef42be3578a819u, 0x3fef4102cd3d09b9u, 0x3fef3f49917ddc96u, 0x3fef3d9282fc1f27u, 0x3fef3bdda27912d1u,
    0x3fef3a2af0b63bffu, 0x3fef387a6e756238u, 0x3fef36cc1c78903au, 0x3fef351ffb82140au, 0x3fef33760c547f15u,
    0x3fef31ce4fb2a63fu, 0x3fef3028c65fa1ffu, 0x3fef2e85711ece75u, 0x3fef2ce450b3cb82u, 0x3fef2b4565e27cddu,
    0x3fef29a8b16f0a30u, 0x3fef280e341ddf29u, 0x3fef2675eeb3ab98u, 0x3fef24dfe1f56381u, 0x3fef234c0ea83f36u,
    0x3fef21ba7591bb70u, 0x3fef202b17779965u, 0x3fef1e9df51fdee1u, 0x3fef1d130f50d65cu, 0x3fef1b8a66d10f13u,
    0x3fef1a03fc675d1fu, 0x3fef187fd0dad990u, 0x3fef16fde4f2e280u, 0x3fef157e39771b2fu, 0x3fef1400cf2f6c18u,
    0x3fef1285a6e4030bu, 0x3fef110cc15d5346u, 0x3fef0f961f641589u, 0x3fef0e21c1c14833u, 0x3fef0cafa93e2f56u,
    0x3fef0b3fd6a454d2u, 0x3fef09d24abd886bu, 0x3fef08670653dfe4u, 0x3fef06fe0a31b715u, 0x3fef05975721b004u,
    0x3fef0432edeeb2fdu, 0x3fef02d0cf63eeacu, 0x3fef0170fc4cd831u, 0x3fef001375752b40u, 0x3feefeb83ba8ea32u,
    0x3feefd5f4fb45e20u, 0x3feefc08b26416ffu, 0x3feefab46484ebb4u, 0x3feef96266e3fa2du, 0x3feef812ba4ea77du,
    0x3feef6c55f929ff1u, 0x3feef57a577dd72bu, 0x3feef431a2de883bu, 0x3feef2eb428335b4u, 0x3feef1a7373aa9cbu,
    0x3feef06581d3f669u, 0x3feeef26231e754au, 0x3feeede91be9c811u, 0x3feeecae6d05d866u, 0x3feeeb761742d808u,
    0x3feeea401b7140efu, 0x3feee90c7a61d55bu, 0x3feee7db34e59ff7u, 0x3feee6ac4bcdf3eau, 0x3feee57fbfec6cf4u,
    0x3feee4559212ef89u, 0x3feee32dc313a8e5u, 0x3feee20853c10f28u, 0x3feee0e544ede173u, 0x3feedfc4976d27fau,
    0x3feedea64c123422u, 0x3feedd8a63b0a09bu, 0x3feedc70df1c5175u, 0x3feedb59bf29743fu, 0x3feeda4504ac801cu,
    0x3feed932b07a35dfu, 0x3feed822c367a024u, 0x3feed7153e4a136au, 0x3feed60a21f72e2au, 0x3feed5016f44d8f5u,
    0x3feed3fb2709468au, 0x3feed2f74a1af3f1u, 0x3feed1f5d950a897u, 0x3feed0f6d5817663u, 0x3feecffa3f84b9d4u,
    0x3feecf0018321a1au, 0x3feece086061892du, 0x3feecd1318eb43ecu, 0x3feecc2042a7d232u, 0x3feecb2fde7006f4u,
    0x3feeca41ed1d0057u, 0x3feec9566f8827d0u, 0x3feec86d668b3237u, 0x3feec786d3001fe5u, 0x3feec6a2b5c13cd0u,
    0x3feec5c10fa920a1u, 0x3feec4e1e192aed2u, 0x3feec4052c5916c4u, 0x3feec32af0d7d3deu, 0x3feec2532feaada6u,
    0x3feec17dea6db7d7u, 0x3feec0ab213d5283u, 0x3feebfdad5362a27u, 0x3feebf0d073537cau, 0x3feebe41b817c114u,
    0x3feebd78e8bb586bu, 0x3feebcb299fddd0du, 0x3feebbeeccbd7b2au, 0x3feebb2d81d8abffu, 0x3feeba6eba2e35f0u,
    0x3feeb9b2769d2ca7u, 0x3feeb8f8b804f127u, 0x3feeb8417f4531eeu, 0x3feeb78ccd3deb0du, 0x3feeb6daa2cf6642u,
    0x3feeb62b00da3b14u, 0x3feeb57de83f4eefu, 0x3feeb4d359dfd53du, 0x3feeb42b569d4f82u, 0x3feeb385df598d78u,
    0x3feeb2e2f4f6ad27u, 0x3feeb24298571b06u, 0x3feeb1a4ca5d920fu, 0x3feeb1098bed1bdfu, 0x3feeb070dde910d2u,
    0x3feeafdac1351819u, 0x3feeaf4736b527dau, 0x3feeaeb63f4d854cu, 0x3feeae27dbe2c4cfu, 0x3feead9c0d59ca07u,
    0x3feead12d497c7fdu, 0x3feeac8c32824135u, 0x3feeac0827ff07ccu, 0x3feeab86b5f43d92u, 0x3feeab07dd485429u,
    0x3feeaa8b9ee20d1eu, 0x3feeaa11fba87a03u, 0x3feea99af482fc8fu, 0x3feea9268a5946b7u, 0x3feea8b4be135accu,
    0x3feea84590998b93u, 0x3feea7d902d47c65u, 0x3feea76f15ad2148u, 0x3feea707ca0cbf0fu, 0x3feea6a320dceb71u,
    0x3feea6411b078d26u, 0x3feea5e1b976dc09u, 0x3feea584fd15612au, 0x3feea52ae6cdf6f4u, 0x3feea4d3778bc944u,
    0x3feea47eb03a5585u, 0x3feea42c91c56acdu, 0x3feea3dd1d1929fdu, 0x3feea390532205d8u, 0x3feea34634ccc320u,
    0x3feea2fec30678b7u, 0x3feea2b9febc8fb7u, 0x3feea277e8dcc390u, 0x3feea23882552225u, 0x3feea1fbcc140be7u,
    0x3feea1c1c70833f6u, 0x3feea18a7420a036u, 0x3feea155d44ca973u, 0x3feea123e87bfb7au, 0x3feea0f4b19e9538u,
    0x3feea0c830a4c8d4u, 0x3feea09e667f3bcdu, 0x3feea077541ee718u, 0x3feea052fa75173eu, 0x3feea0315a736c75u,
    0x3feea012750bdabfu, 0x3fee9ff64b30aa09u, 0x3fee9fdcddd47645u, 0x3fee9fc62dea2f8au, 0x3fee9fb23c651a2fu,
    0x3fee9fa10a38cee8u, 0x3fee9f9298593ae5u, 0x3fee9f86e7ba9fefu, 0x3fee9f7df9519484u, 0x3fee9f77ce1303f6u,
    0x3fee9f7466f42e87u, 0x3fee9f73c4eaa988u, 0x3fee9f75e8ec5f74u, 0x3fee9f7ad3ef9011u, 0x3fee9f8286ead08au,
    0x3fee9f8d02d50b8fu, 0x3fee9f9a48a58174u, 0x3fee9faa5953c849u, 0x3fee9fbd35d7cbfdu, 0x3fee9fd2df29ce7cu,
    0x3fee9feb564267c9u, 0x3feea0069c1a861du, 0x3feea024b1ab6e09u, 0x3feea04597eeba8fu, 0x3feea0694fde5d3fu,
    0x3feea08fda749e5du, 0x3feea0b938ac1cf6u, 0x3feea0e56b7fcf03u, 0x3feea11473eb0187u, 0x3feea14652e958aau,
    0x3feea17b0976cfdbu, 0x3feea1b2988fb9ecu, 0x3feea1ed0130c132u, 0x3feea22a4456e7a3u, 0x3feea26a62ff86f0u,
    0x3feea2ad5e2850acu, 0x3feea2f336cf4e62u, 0x3feea33bedf2e1b9u, 0x3feea3878491c491u, 0x3feea3d5fbab091fu,
    0x3feea427543e1a12u, 0x3feea47b8f4abaa9u, 0x3feea4d2add106d9u, 0x3feea52cb0d1736au, 0x3feea589994cce13u,
    0x3feea5e968443d9au, 0x3feea64c1eb941f7u, 0x3feea6b1bdadb46du, 0x3feea71a4623c7adu, 0x3feea785b91e07f1u,
    0x3feea7f4179f5b21u, 0x3feea86562ab00ecu, 0x3feea8d99b4492edu, 0x3feea950c27004c2u, 0x3feea9cad931a436u,
    0x3feeaa47e08e1957u, 0x3feeaac7d98a6699u, 0x3feeab4ac52be8f7u, 0x3feeabd0a478580fu, 0x3feeac597875c644u,
    0x3feeace5422aa0dbu, 0x3feead74029db01eu, 0x3feeae05bad61778u, 0x3feeae9a6bdb5598u, 0x3feeaf3216b5448cu,
    0x3feeafccbc6c19e6u, 0x3feeb06a5e0866d9u, 0x3feeb10afc931857u, 0x3feeb1ae99157736u, 0x3feeb2553499284bu,
    0x3feeb2fed0282c8au, 0x3feeb3ab6ccce12cu, 0x3feeb45b0b91ffc6u, 0x3feeb50dad829e70u, 0x3feeb5c353aa2fe2u,
    0x3feeb67bff148396u, 0x3feeb737b0cdc5e5u, 0x3feeb7f669e2802bu, 0x3feeb8b82b5f98e5u, 0x3feeb97cf65253d1u,
    0x3feeba44cbc8520fu, 0x3feebb0faccf9243u, 0x3feebbdd9a7670b3u, 0x3feebcae95cba768u, 0x3feebd829fde4e50u,
    0x3feebe59b9bddb5bu, 0x3feebf33e47a22a2u, 0x3feec01121235681u, 0x3feec0f170ca07bau, 0x3feec1d4d47f2598u,
    0x3feec2bb4d53fe0du, 0x3feec3a4dc5a3dd3u, 0x3feec49182a3f090u, 0x3feec581414380f2u, 0x3feec674194bb8d5u,
    0x3feec76a0bcfc15eu, 0x3feec86319e32323u, 0x3feec95f4499c647u, 0x3feeca5e8d07f29eu, 0x3feecb60f4424fcbu,
    0x3feecc667b5de565u, 0x3feecd6f23701b15u, 0x3feece7aed8eb8bbu, 0x3feecf89dacfe68cu, 0x3feed09bec4a2d33u,
    0x3feed1b1231475f7u, 0x3feed2c980460ad8u, 0x3feed3e504f696b1u, 0x3feed503b23e255du, 0x3feed625893523d4u,
    0x3feed74a8af46052u, 0x3feed872b8950a73u, 0x3feed99e1330b358u, 0x3feedacc9be14dcau, 0x3feedbfe53c12e59u,
    0x3feedd333beb0b7eu, 0x3feede6b5579fdbfu, 0x3feedfa6a1897fd2u, 0x3feee0e521356ebau, 0x3feee226d59a09eeu,
    0x3feee36bbfd3f37au, 0x3feee4b3e100301eu, 0x3feee5ff3a3c2774u, 0x3feee74dcca5a413u, 0x3feee89f995ad3adu,
    0x3feee9f4a17a4735u, 0x3feeeb4ce622f2ffu, 0x3feeeca868742ee4u, 0x3feeee07298db666u, 0x3feeef692a8fa8cdu,
    0x3feef0ce6c9a8952u, 0x3feef236f0cf3f3au, 0x3feef3a2b84f15fbu, 0x3feef511c43bbd62u, 0x3feef68415b749b1u,
    0x3feef7f9ade433c6u, 0x3feef9728de5593au, 0x3feefaeeb6ddfc87u, 0x3feefc6e29f1c52au, 0x3feefdf0e844bfc6u,
    0x3feeff76f2fb5e47u, 0x3fef01004b3a7804u, 0x3fef028cf22749e4u, 0x3fef041ce8e77680u, 0x3fef05b030a1064au,
    0x3fef0746ca7a67a7u, 0x3fef08e0b79a6f1fu, 0x3fef0a7df9285775u, 0x3fef0c1e904bc1d2u, 0x3fef0dc27e2cb5e5u,
    0x3fef0f69c3f3a207u, 0x3fef111462c95b60u, 0x3fef12c25bd71e09u, 0x3fef1473b0468d30u, 0x3fef16286141b33du,
    0x3fef17e06ff301f4u, 0x3fef199bdd85529cu, 0x3fef1b5aab23e61eu, 0x3fef1d1cd9fa652cu, 0x3fef1ee26b34e065u,
    0x3fef20ab5fffd07au, 0x3fef2277b9881650u, 0x3fef244778fafb22u, 0x3fef261a9f8630adu, 0x3fef27f12e57d14bu,
    0x3fef29cb269e601fu, 0x3fef2ba88988c933u, 0x3fef2d89584661a1u, 0x3fef2f6d9406e7b5u, 0x3fef31553dfa8313u,
    0x3fef33405751c4dbu, 0x3fef352ee13da7cbu, 0x3fef3720dcef9069u, 0x3fef39164b994d23u, 0x3fef3b0f2e6d1675u,
    0x3fef3d0b869d8f0fu, 0x3fef3f0b555dc3fau, 0x3fef410e9be12cb9u, 0x3fef43155b5bab74u, 0x3fef451f95018d17u,
    0x3fef472d4a07897cu, 0x3fef493e7ba2c38cu, 0x3fef4b532b08c968u, 0x3fef4d6b596f948cu, 0x3fef4f87080d89f2u,
    0x3fef51a638197a3cu, 0x3fef53c8eacaa1d6u, 0x3fef55ef2158a91fu, 0x3fef5818dcfba487u, 0x3fef5a461eec14beu,
    0x3fef5c76e862e6d3u, 0x3fef5eab3a99745bu, 0x3fef60e316c98398u, 0x3fef631e7e2d479du, 0x3fef655d71ff6075u,
    0x3fef679ff37adb4au, 0x3fef69e603db3285u, 0x3fef6c2fa45c4dfdu, 0x3fef6e7cd63a8315u, 0x3fef70cd9ab294e4u,
    0x3fef7321f301b460u, 0x3fef7579e065807du, 0x3fef77d5641c0658u, 0x3fef7a347f63c159u, 0x3fef7c97337b9b5fu,
    0x3fef7efd81a2ece1u, 0x3fef81676b197d17u, 0x3fef83d4f11f8220u, 0x3fef864614f5a129u, 0x3fef88bad7dcee90u,
    0x3fef8b333b16ee12u, 0x3fef8daf3fe592e8u, 0x3fef902ee78b3ff6u, 0x3fef92b2334ac7eeu, 0x3fef953924676d76u,
    0x3fef97c3bc24e350u, 0x3fef9a51fbc74c83u, 0x3fef9ce3e4933c7eu, 0x3fef9f7977cdb740u, 0x3fefa212b6bc3181u,
    0x3fefa4afa2a490dau, 0x3fefa7503ccd2be5u, 0x3fefa9f4867cca6eu, 0x3fefac9c80faa594u, 0x3fefaf482d8e67f1u,
    0x3fefb1f78d802dc2u, 0x3fefb4aaa2188510u, 0x3fefb7616ca06dd6u, 0x3fefba1bee615a27u, 0x3fefbcda28a52e59u,
    0x3fefbf9c1cb6412au, 0x3fefc261cbdf5be7u, 0x3fefc52b376bba97u, 0x3fefc7f860a70c22u, 0x3fefcac948dd7274u,
    0x3fefcd9df15b82acu, 0x3fefd0765b6e4540u, 0x3fefd35288633625u, 0x3fefd632798844f8u, 0x3fefd916302bd526u,
    0x3fefdbfdad9cbe14u, 0x3fefdee8f32a4b45u, 0x3fefe1d802243c89u, 0x3fefe4cadbdac61du, 0x3fefe7c1819e90d8u,
    0x3fefeabbf4c0ba54u, 0x3fefedba3692d514u, 0x3feff0bc4866e8adu, 0x3feff3c22b8f71f1u, 0x3feff6cbe15f6314u,
    0x3feff9d96b2a23d9u, 0x3feffceaca4391b6u};
/* Returns e^x for |x| <= 708: e^x = 2^(n / 512) * e^r for an integer n, with |r| <= ln(2) / 1024.  The
   coefficient of r^3 is a little larger than 1/6, in place of the term r^5 / 120.  The error is at most 1 ulp. */
OPDI_ALWAYS opdi_v2d opdi_exp_two(opdi_v2d x) {
    const opdi_v2d k = opdi_exp_round_2d(x * OPDI_TWO(738.6598609351493));
    opdi_v2d r = opdi_exp_minus_2d(x, k, OPDI_TWO(0.0013538030870311431));
    r = opdi_exp_minus_2d(r, k, OPDI_TWO(4.529388308293554e-20));
    const opdi_v2w n = opdi_exp_integer_2d(k), index = n & 511;
    const opdi_v2w bits = {opdi_exp_powers[index[0]], opdi_exp_powers[index[1]]};
    const opdi_v2d power = (opdi_v2d)(bits + (n << 43)), square = r * r;
    opdi_v2d sum = opdi_exp_plus_2d(OPDI_TWO(0.5), r, OPDI_TWO(0.16666666998858548));
    sum = opdi_exp_plus_2d(sum, square, OPDI_TWO(1.0 / 24));
    return opdi_exp_plus_2d(power, power, opdi_exp_plus_2d(r, sum, square));
}
/* Sets out[i] to e^a[i] for i < count, a multiple of 8; out may be a. */
OPDI_INTERNAL void opdi_exp_neon_f64(int64_t count, double *out, const double *a) {
    if (opd_same_bits()) {
        for (int64_t i = 0; i < count; i++) { out[i] = opdi_exp1_f64(a[i]); }
        return;
    }
    for (const double *const end = a + count; a < end; a += 8, out += 8) {
        const opdi_v2d *x = (const opdi_v2d *)(const void *)a, limit = OPDI_TWO(708.0 * 708.0);
        const opdi_v2d x0 = x[0], x1 = x[1], x2 = x[2], x3 = x[3];
        opdi_v2d *const y = (opdi_v2d *)(void *)out;
        const opdi_v2d sum = opdi_exp_plus_2d(opdi_exp_plus_2d(x0 * x0, x1, x1), x2, x2);
        opdi_v4u within = opdi_exp_within_2d(opdi_exp_plus_2d(sum, x3, x3), limit);
        const opdi_v2d y0 = opdi_exp_two(x0), y1 = opdi_exp_two(x1), y2 = opdi_exp_two(x2), y3 = opdi_exp_two(x3);
        __asm__("uminv %s0, %1.4s" : "=w"(within) : "w"(within));
        if (OPDI_LIKELY(within[0])) {
            OPDI_EXP_STORE(y);
            continue;
        }
        double from[8];
        __asm__("" : "+r"(x));                     /* reads the arguments again, so that they need no copies above */
        memcpy(from, x, sizeof from);
        OPDI_EXP_STORE(y);
        for (int j = 0; j < 8; j++) {
            if (!(fabs(from[j]) <= 708.0)) { out[j] = opdi_exp1_f64(from[j]); }
        }
    }
}
#undef OPDI_FOUR
#undef OPDI_TWO
#undef OPDI_EXP_STORE
#endif
