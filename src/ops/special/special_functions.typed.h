/* Special functions of doubles, for the processor (functions.c) and CUDA (special.cu).  A function is plain C, without
   recursion, because a GPU could not find out how much stack it needs. */

//== coefficients of series and polynomials ============================================================================

OPDI_INTERNAL const double opdi_stirling[9] = {
    0.08333333333333333, -0.002777777777777778, 0.0007936507936507937, -0.0005952380952380953, 0.0008417508417508417,
    -0.0019175269175269176, 0.00641025641025641, -0.029550653594771242, 0.17964437236883057};
OPDI_INTERNAL const double opdi_digamma_series[9] = {
    0.08333333333333333, -0.008333333333333333, 0.003968253968253968, -0.004166666666666667, 0.007575757575757576,
    -0.021092796092796094, 0.08333333333333333, -0.4432598039215686, 3.0539543302701198};
OPDI_SHARED_TEXT const double opdi_zeta_series[12] = {
    0.08333333333333333, -0.001388888888888889, 3.306878306878307e-05, -8.267195767195768e-07, 2.08767569878681e-08,
    -5.284190138687493e-10, 1.3382536530684679e-11, -3.3896802963225827e-13, 8.586062056277845e-15,
    -2.174868698558062e-16, 5.5090028283602295e-18, -1.3954464685812522e-19};
OPDI_SHARED_TEXT const double opdi_gamma_ones[20] = {
    -2.4570247382208006, -3.7075610815513266e-17, -2.7476826467274127, 9.055340329338315e-17, -3.14358088834998,
    -2.1818179852331714e-16, -3.955294284858598, -1.999428391746348e-17, -4.039361839740537, 2.1143995503980602e-16,
    -4.991544640560048, 1.5174411760571722e-16, -5.0082181683225935, -4.3926353491015815e-17, -5.998607480080875,
    -3.311862478893795e-16, -6.001385294453155, 6.415847287933042e-17, -6.999801507890638, 1.0550130037400023e-17};
OPDI_INTERNAL const double opdi_gamma_near_two[19] = {
    0.42278433509846713, 0.16123351671205663, -0.016838075263299536, 0.002572601053472542, -0.000461596939291756,
    9.032844784489912e-05, -1.8636779875052926e-05, 3.981793088659667e-06, -8.716982449081134e-07,
    1.9425327031438992e-07, -4.387339030049162e-08, 1.001249236957858e-08, -2.3043102744274226e-09,
    5.352455971471404e-10, -1.2481294697143873e-10, 2.8075860826633894e-11, -6.566215046625873e-12,
    2.1270762170785405e-12, -5.117684453811745e-13};
OPDI_INTERNAL const double opdi_erfinv_middle[25] = {
    1.6536545626831027, 0.7504943200799635, -0.05892256710377839, -0.022604447453450232, 0.017808361818321756,
    -0.004137314377403391, -0.001271692268923054, 0.001232485568550093, -0.00026439366376450275,
    -0.00011688883906368398, 9.336736525855553e-05, -1.5027713926607673e-05, -1.12572237422896e-05,
    7.1300663740767115e-06, -6.839448584111029e-07, -1.059336931327948e-06, 5.397895417173957e-07,
    -1.0167881522843899e-08, -9.905042307855316e-08, 3.9142671001331085e-08, 5.039596477958063e-09,
    -8.557984074479201e-09, 1.4461050507676023e-09, 7.680990475576525e-10, -2.5466157998892667e-10};
OPDI_INTERNAL const double opdi_erfinv_tail[25] = {
    3.5875041872852242, 1.2608470495124553, 0.0032100697498925377, -0.002513060360180213, 0.0013296875361222963,
    -0.0008104755785164408, 0.0006085808913154581, -0.0004564659354180374, 0.00028191565262630043,
    -0.00011949304150452255, 1.4562201696028464e-05, 2.4981762239216766e-05, -2.352162194228108e-05,
    1.0192254058352984e-05, -9.132713392295978e-07, -1.8793362059549453e-06, 1.3814261848007931e-06,
    -4.3398778915619797e-07, -1.6644086681924207e-08, 9.294140177453962e-08, -5.4819225340819004e-08,
    1.4382568588564247e-08, 3.37450048126613e-09, -3.814212743385927e-09, 8.487194093702458e-10};
OPDI_SHARED_TEXT const double opdi_erfinv_far[47] = {
    16.167818521819697, 11.285678745648068, -0.017383315740869182, 0.008667161215317458, -0.004256313404221921,
    0.001983427045679832, -0.000819429440091023, 0.00024039785440625435, 3.0167012714528128e-05,
    -0.00014077100462852647, 0.00017132986534073444, -0.0001624429202630677, 0.00013751487057438077,
    -0.00013607111437794283, 0.00014102169621729095, 0.00012012633398518287, -0.000370999966130888,
    -0.0013733998559155606, 0.0027610512564484645, 0.007163298079255033, -0.013654998597330287, -0.03019021412606424,
    0.053861620834436734, 0.10014714224660594, -0.16885611055474528, -0.2646893458627321, 0.42427922462137313,
    0.5594917467999015, -0.8570993246708947, -0.9465278328926597, 1.3919341748130496, 1.277452483981488,
    -1.8102527513493016, -1.3647551083380571, 1.8698236111083852, 1.1385197234965871, -1.512523130933567,
    -0.7255116910013503, 0.9369954667312674, 0.3408913318776074, -0.42897618061247766, -0.11126390878996534,
    0.1367048811054247, 0.02252274879689945, -0.027068466395709843, -0.0021291756731886572, 0.0025072091355943507};
OPDI_SHARED_TEXT const double opdi_i0_series[25] = {
    1.0, 16.0, 64.0, 113.77777777777777, 113.77777777777777, 72.81777777777778, 32.36345679012346, 10.567659360040313,
    2.6419148400100783, 0.5218597214834723, 0.08349755543735556, 0.011040999066096603, 0.0012267776740107336,
    0.00011614463185900436, 9.481194437469744e-06, 6.742182711089596e-07, 4.2138641944309975e-08, 2.332935194148649e-09,
    1.1520667625425427e-10, 5.106113074980799e-12, 2.0424452299923196e-13, 7.410232126956262e-15,
    2.4496635130433923e-16, 7.40919020958304e-18, 2.0581083915508441e-19};
OPDI_INTERNAL const double opdi_i1_series[25] = {
    1.0, 8.0, 21.333333333333332, 28.444444444444443, 22.755555555555556, 12.136296296296296, 4.623350970017636,
    1.3209574200050391, 0.29354609333445314, 0.05218597214834722, 0.007590686857941414, 0.0009200832555080502,
    9.436751338544105e-05, 8.296045132786026e-06, 6.320796291646496e-07, 4.2138641944309975e-08, 2.4787436437829395e-09,
    1.2960751078603606e-10, 6.0635092765396984e-12, 2.5530565374903993e-13, 9.725929666630093e-15,
    3.368287330434664e-16, 1.0650710926275618e-17, 3.087162587326266e-19, 8.232433566203377e-21};
OPDI_SHARED_TEXT const double opdi_i0_large[25] = {
    0.4021765094450081, 0.0033605519836678614, 0.0001362160743919305, 1.1143033790932038e-05, 1.4838475658279249e-06,
    2.9735985885673923e-07, 8.872219737904054e-08, 3.932584334552952e-08, 2.1548377974791598e-08, 7.554691881248808e-09,
    -6.747657956107524e-09, -1.340891754008974e-08, -5.404771567579958e-09, 7.552583062123384e-09,
    7.430464650325426e-09, -3.505966530879332e-09, -5.95356943826489e-09, 1.5200816953924232e-09,
    3.6379546359011143e-09, -5.715843864202709e-10, -1.618980683624682e-09, 1.5279202694981569e-10,
    4.577087631643623e-10, -2.0260604287413626e-11, -6.067631570603006e-11};
OPDI_INTERNAL const double opdi_i1_large[25] = {
    0.38939845902587233, -0.009749577193235737, -0.00021923576383388928, -1.5038547200567216e-05,
    -1.8349101326980946e-06, -3.483855761044295e-07, -1.0001288294864884e-07, -4.312917729178349e-08,
    -2.337392820814264e-08, -8.427766093735185e-09, 6.734464815301592e-09, 1.4034238782067183e-08,
    5.974437608040264e-09, -7.64239413436356e-09, -7.888351507862078e-09, 3.4262341490077958e-09, 6.242741219786445e-09,
    -1.4387250533041013e-09, -3.794670896208339e-09, 5.295625441161261e-10, 1.6848984479705146e-09,
    -1.4011625179770627e-10, -4.758818838703853e-10, 1.8515118828852956e-11, 6.305965197150057e-11};
OPDI_SHARED_TEXT const double opdi_k0_small[11] = {
    -0.30362077291575545, 0.3404973210133806, 0.07177701034240512, 0.005053392643196092, 0.00018280555827901256,
    4.054506619949891e-06, 6.093361934166155e-08, 6.623013272794453e-10, 5.452107588016936e-12, 3.518631515854722e-14,
    1.8282990225962873e-16};
OPDI_SHARED_TEXT const double opdi_k1_small[11] = {
    0.8850882877295894, -0.3322409552403131, -0.24383852886774365, -0.02785423521977184, -0.0013831688466153064,
    -3.891869064371633e-05, -7.081133770184678e-07, -9.032127501740678e-09, -8.53273511404978e-11,
    -6.214271617329577e-13, -3.5962181014457795e-15};
OPDI_SHARED_TEXT const double opdi_k0_large[24] = {
    1.2185953385133905, -0.03107146182488952, 0.0030328918102753206, -0.0004797690567662314, 9.95605474202942e-05,
    -2.4735204561466906e-05, 7.002245645755651e-06, -2.191177788015528e-06, 7.427801232190096e-07,
    -2.6890662472901614e-07, 1.02954317593912e-07, -4.133923052104385e-08, 1.7047535884249698e-08,
    -7.286380907337665e-09, 3.808399859919043e-09, -1.9309444875845705e-09, 4.757544705776374e-11,
    1.7887095838476482e-10, 8.133913205464114e-10, -5.541051446065683e-10, -3.119936129682105e-10,
    2.213758097591008e-10, 1.0926983537268735e-10, -6.910453875670571e-11};
OPDI_SHARED_TEXT const double opdi_k1_large[24] = {
    1.363151890371342, 0.10334973775386523, -0.005566729880074588, 0.0007357241549081501, -0.00013959021956272223,
    3.284386555825453e-05, -8.961207387750025e-06, 2.730041433569803e-06, -9.067087633371393e-07,
    3.2298119177151824e-07, -1.2203186351938403e-07, 4.8461952200091865e-08, -1.9817577141591116e-08,
    8.40938756536177e-09, -4.331939985658629e-09, 2.1757782025837176e-09, -8.336227195991456e-11,
    -1.7982138496175016e-10, -8.908596710923906e-10, 6.042482293782838e-10, 3.3867804167808003e-10,
    -2.399376595899464e-10, -1.1931668393112158e-10, 7.52479548635394e-11};
OPDI_INTERNAL const double opdi_j0_small[15] = {
    0.0011434937743762545, -0.002119794289479692, 0.0015636431645931661, -0.0006415390646406123, 0.00016977200713997844,
    -3.157342540223544e-05, 4.3669323246406834e-06, -4.677128021300745e-07, 3.998839345472477e-08,
    -2.7948629678329127e-09, 1.62764894918064e-10, -8.023472601933258e-12, 3.3923298937104677e-13,
    -1.2482967042743655e-14, 4.0068948013720515e-16};
OPDI_INTERNAL const double opdi_y0_small[17] = {
    -0.01235624499488501, -0.016014523462115793, 0.07070212676227833, -0.06603700358327874, 0.030807885208187415,
    -0.008888129696989565, 0.0017628909787366694, -0.0002565849966145195, 2.866146926985796e-05, -2.539470290883619e-06,
    1.8305620974455124e-07, -1.0954471903178448e-08, 5.532512285531624e-10, -2.3907642602091533e-11,
    8.943128559670423e-13, -2.934097065338115e-14, 8.458746409323383e-16};
OPDI_INTERNAL const double opdi_p0_large[13] = {
    0.9994572757882519, -0.0005363673192129672, 6.137416080109497e-06, -2.0527448261170675e-07, 1.280376144080092e-08,
    -1.2121098178951377e-09, 1.5500565496632596e-10, -2.491146535471666e-11, 4.786995821368028e-12,
    -1.0157485021065676e-12, 2.4531772967345006e-13, -1.0251790052831013e-13, 3.339452259070809e-14};
OPDI_INTERNAL const double opdi_q0_large[15] = {
    -0.015555113879513518, 6.833149099344083e-05, -1.477138832650122e-06, 7.106214852192226e-08, -5.668716046704292e-09,
    6.432789503382007e-10, -9.4704131236215e-11, 1.7029372022291316e-11, -3.5884013838881433e-12, 8.689732394690306e-13,
    -2.34205092942912e-13, 5.756325587995953e-14, -1.642189437353317e-14, 1.2731367623367943e-14,
    -5.071762053003792e-15};
OPDI_INTERNAL const double opdi_j1_small[15] = {
    0.00019498936985895625, -0.0002697522746716368, 0.00015860016799369874, -5.408003239085506e-05,
    1.224217365301561e-05, -1.989093515914257e-06, 2.442522260752042e-07, -2.352192254577852e-08,
    1.8268547695321333e-09, -1.1696932521783476e-10, 6.284733827929608e-12, -2.875530868558852e-13,
    1.1343125416873433e-14, -3.9104228826133377e-16, 1.181146462725329e-17};
OPDI_INTERNAL const double opdi_y1_small[17] = {
    0.07075985882118005, -0.24337743079193114, 0.023367571720993584, 0.23507209206669755, -0.19639839859930425,
    0.07854786922242532, -0.019628756833099423, 0.0034224907399188495, -0.00044381734351149876, 4.467433012646365e-05,
    -3.600999874357815e-06, 2.3804930420514178e-07, -1.3153322551127247e-08, 6.169688029066965e-10,
    -2.4887509903377128e-11, 8.760001143977853e-13, -2.695138958384033e-14};
OPDI_INTERNAL const double opdi_p1_large[13] = {
    1.0009070262780821, 0.0008988049416705183, -7.9596946984383e-06, 2.453676633366693e-07, -1.4708512991275258e-08,
    1.3602969253877949e-09, -1.713107485294131e-10, 2.72345126828134e-11, -5.191158004646548e-12,
    1.0954826479277623e-12, -2.6335760672461096e-13, 1.0923713653079462e-13, -3.5455617466606254e-14};
OPDI_INTERNAL const double opdi_q1_large[15] = {
    0.04677687402744898, -9.621458822054632e-05, 1.8212018512314264e-06, -8.291960701313517e-08, 6.420132496338991e-09,
    -7.151113611051071e-10, 1.0395096687547827e-10, -1.8520736145988993e-11, 3.875456046538219e-12,
    -9.33138059712287e-13, 2.503410968458231e-13, -6.144675787095688e-14, 1.7495330566839966e-14,
    -1.3449019339973269e-14, 5.344527277743522e-15};
OPDI_SHARED_TEXT const double opdi_airy_large[24] = {
    0.983679282828043, -0.014613458724023217, 0.0014132014717029575, -0.0002278522136910503, 4.846334053382966e-05,
    -1.2354390686945676e-05, 3.5878329689095155e-06, -1.1510261131203217e-06, 3.9970880001578955e-07,
    -1.4812065561005197e-07, 5.8020341371436036e-08, -2.3820808462967335e-08, 9.984700470064157e-09,
    -4.334633626191562e-09, 2.417112863971864e-09, -1.2787487327828507e-09, -7.598201853112061e-11,
    2.0119706569032908e-10, 6.200741512453467e-10, -4.349436323146175e-10, -2.499121453926284e-10,
    1.8009401491463617e-10, 8.420330221634052e-11, -5.4400006009749504e-11};
OPDI_SHARED_TEXT const double opdi_airy_middle[25] = {
    0.2911639543485452, -0.43585869600857, 0.11146120127405246, 0.20445875061752863, -0.1875493930579569,
    0.03769505532599, 0.03173928708435929, -0.023244934564045732, 0.004041470157367012, 0.002115358871467215,
    -0.0013498230066591648, 0.00021163023050457282, 7.805714600038621e-05, -4.533446422899727e-05,
    6.5602638957274155e-06, 1.8267755059500588e-06, -9.914210876796384e-07, 1.344411648590224e-07,
    2.9510510935056556e-08, -1.5273350030517167e-08, 1.9588936192693617e-09, 3.729657325747628e-10,
    -1.7591571622096174e-10, 1.2270285136339673e-11, 4.066709064843834e-12};
OPDI_SHARED_TEXT const double opdi_airy_left[27] = {
    -0.4190132668052308, -0.004294234328909329, 2.0852457105854065, -0.36715136262155945, -1.7314771354397396,
    0.7414958568130603, 0.508863550987464, -0.3966627672043809, -0.01947907452355758, 0.09271145414319329,
    -0.021466520603437872, -0.009337857783571935, 0.005382836454390667, -0.00014170687693947843, -0.0005693468322120683,
    0.00014409086764570413, 2.0447136883882392e-05, -1.6490948024079906e-05, 1.8586260580226363e-06,
    8.005415890847114e-07, -2.8132523254780814e-07, 4.5804502180621205e-09, 1.5398230293126793e-08,
    -2.9767189183760734e-09, -2.6082943689148887e-10, 1.5654303571622305e-10, -1.1701655361706237e-11};
OPDI_SHARED_TEXT const double opdi_airy_cosine[13] = {
    0.9996702731603566, -0.0003254319872640143, 4.128666158294696e-06, -1.542112034842239e-07, 1.067342663285596e-08,
    -1.1119337986572293e-09, 1.5522262548635303e-10, -2.7051883478257475e-11, 5.602889049196218e-12,
    -1.2552086884253272e-12, 3.1998747979878037e-13, -1.5179090444882385e-13, 5.2727784242470915e-14};
OPDI_SHARED_TEXT const double opdi_airy_sine[16] = {
    0.06911133919898425, -0.0003247868744479707, 7.854002446826036e-06, -4.215741963300471e-07, 3.7225332370846745e-08,
    -4.636455901462674e-09, 7.433297108253922e-10, -1.445847358438312e-10, 3.272877827652237e-11,
    -8.379906510740823e-12, 2.4534608074407053e-12, -7.791454007942917e-13, 1.746226068459655e-13,
    -4.8598113545860894e-14, 7.036258411636833e-14, -3.147397232889125e-14};
OPDI_SHARED_TEXT const double opdi_gamma_large_0[22] = {
    -0.3333333333333333, 0.08333333333333333, -0.014814814814814815, 0.0011574074074074073, 0.0003527336860670194,
    -0.0001787551440329218, 3.919263178522438e-05, -2.185448510679992e-06, -1.85406221071516e-06, 8.296711340953087e-07,
    -1.7665952736826078e-07, 6.707853543401498e-09, 1.0261809784240309e-08, -4.382036018453353e-09,
    9.14769958223679e-10, -2.5514193994946248e-11, -5.830772132550426e-11, 2.4361948020667415e-11,
    -5.0276692801141755e-12, 1.1004392031956135e-13, 3.371763262400985e-13, -1.392388722418162e-13};
OPDI_SHARED_TEXT const double opdi_gamma_large_1[19] = {
    -0.001851851851851852, -0.003472222222222222, 0.0026455026455026454, -0.0009902263374485596, 0.00020576131687242798,
    -4.018775720164609e-07, -1.8098550334489977e-05, 7.64916091608111e-06, -1.6120900894563446e-06,
    4.647127802807434e-09, 1.378633446915721e-07, -5.752545603517705e-08, 1.1951628599778148e-08,
    -1.7543241719747647e-11, -1.0091543710600413e-09, 4.162792991842583e-10, -8.56390702649298e-11,
    6.067215101604758e-14, 7.1624989648114856e-12};
OPDI_SHARED_TEXT const double opdi_gamma_large_2[16] = {
    0.004133597883597883, -0.0026813271604938273, 0.0007716049382716049, 2.0093878600823047e-06, -0.0001073665322636516,
    5.2923448829120125e-05, -1.2760635188618728e-05, 3.423578734096138e-08, 1.3721957309062934e-06,
    -6.298992138380055e-07, 1.4280614206064242e-07, -2.0477098421990866e-10, -1.409252991086752e-08,
    6.228974084922022e-09, -1.3670488396617114e-09, 9.428356159014678e-13};
OPDI_SHARED_TEXT const double opdi_gamma_large_3[13] = {
    0.0006494341563786008, 0.00022947209362139917, -0.0004691894943952557, 0.00026772063206283885,
    -7.561801671883977e-05, -2.396505113867297e-07, 1.1082654115347302e-05, -5.6749528269915965e-06,
    1.4230900732435883e-06, -2.7861080291528143e-11, -1.6958404091930278e-07, 8.099464905388083e-08,
    -1.9111168485973655e-08};
OPDI_SHARED_TEXT const double opdi_gamma_large_4[10] = {
    -0.0008618882909167117, 0.0007840392217200666, -0.0002990724803031902, -1.4638452578843418e-06,
    6.641498215465122e-05, -3.968365047179435e-05, 1.1375726970678419e-05, 2.507497226237533e-10,
    -1.6954149536558305e-06, 8.907507532205309e-07};
OPDI_SHARED_TEXT const double opdi_gamma_large_5[7] = {
    -0.00033679855336635813, -6.972813758365857e-05, 0.0002772753244959392, -0.00019932570516188847,
    6.797780477937208e-05, 1.419062920643967e-07, -1.3594048189768693e-05};
OPDI_SHARED_TEXT const double opdi_gamma_large_6[4] = {
    0.0005313079364639922, -0.0005921664373536939, 0.0002708782096718045, 7.902353232660328e-07};
/* Returns the sum of table[k] x^k for k < count, with even and odd powers summed separately. */
OPDI_SHARED_TEXT double opdi_powers(const double *table, int count, double x) {
    double even = 0, odd = 0;
    const double square = x * x;
    if (count & 1) { even = table[--count]; }
    for (; count > 0; count -= 2) {
        odd = odd * square + table[count - 1];
        even = even * square + table[count - 2];
    }
    return even + x * odd;
}
#define OPDI_POWERS(table, x) opdi_powers(table, (int)(sizeof(table) / sizeof(double)), x)
//== the gamma function and related functions ==========================================================================

OPDI_INTERNAL double opdi_special_digamma(double x);
OPDI_INTERNAL double opdi_special_zeta(double s, double q);
/* Returns lgamma(2 + x) for |x| <= 1/2. */
OPDI_SHARED_TEXT double opdi_lgamma_near_two(double x) { return x * OPDI_POWERS(opdi_gamma_near_two, 2 * x); }
/* Returns log(gamma(x)) for x > 0.  Near 2, it is a polynomial; near 1 and 0, the same polynomial after a shift; for
   large x, Stirling's series. */
OPDI_SHARED_LARGE double opdi_lgamma_positive(double x) {
    double product = 1;
    if (x >= 8) {
        if (isinf(x)) { return x; }
        return (x - 0.5) * opdi_log_f64(x) - x + 0.91893853320467274 + OPDI_POWERS(opdi_stirling, 1 / (x * x)) / x;
    }
    if (x < 0.5) { return opdi_lgamma_near_two(x) - opdi_log_f64(x * (1 + x)); }
    if (x < 1.5) { return opdi_lgamma_near_two(x - 1) - opdi_log1p_f64(x - 1); }
    if (x <= 2.5) { return opdi_lgamma_near_two(x - 2); }
    while (x > 2.5) {
        x -= 1;
        product *= x;
    }
    return opdi_lgamma_near_two(x - 2) + opdi_log_f64(product);
}
/* Returns log(|gamma(x)|) for x = zero + less + away, near a zero of this logarithm that is stored in two parts,
   zero and less.  Sums the logs of the quotients of the factors that shift x and the zero to [1.5, 2.5].  `shift` is
   the number of these factors. */
OPDI_SHARED_TEXT double opdi_lgamma_near_zero(double zero, double less, double away) {
    const int shift = (int)floor(2.5 - zero);
    const double middle = zero + shift + away / 2, bend = -2 * opdi_special_zeta(3, middle);
    double sum = away * (opdi_special_digamma(middle) + away * away * bend / 24);
    for (int k = 0; k < shift; k++) { sum -= opdi_log1p_f64(away / ((zero + k) + less)); }
    return sum;
}
/* Returns log(|gamma(x)|) for -20 < x < -2, as log(gamma(x + n)) - log(|x (x + 1) .. (x + n - 1)|) with x + n in [1.5,
   2.5].  Near a zero, calls opdi_lgamma_near_zero, because most digits of these two logarithms would cancel. */
OPDI_SHARED_LARGE double opdi_lgamma_negative(double x) {
    double product = 1;
    for (int k = 0; k < 20; k += 2) {
        const double away = (x - opdi_gamma_ones[k]) - opdi_gamma_ones[k + 1], pole = x - floor(x + 0.5);
        if (fabs(away) < 4e-3 && fabs(away) < fabs(pole) / 3) {
            return opdi_lgamma_near_zero(opdi_gamma_ones[k], opdi_gamma_ones[k + 1], away);
        }
    }
    for (; x < 1.5; x += 1) { product *= x; }
    return opdi_lgamma_near_two(x - 2) - opdi_log_f64(fabs(product));
}
/* lgamma: returns log(|gamma(x)|).  Uses gamma(x) gamma(-x) = -pi / (x sin(pi x)) for negative x. */
OPDI_INTERNAL double opdi_special_lgamma(double x) {
    if (x > 0 || isnan(x)) { return isnan(x) ? x : opdi_lgamma_positive(x); }
    if (x == floor(x)) { return OPDI_INF; }
    if (x < -2 && x > -20) { return opdi_lgamma_negative(x); }
    if (x > -1e-17) { return -opdi_log_f64(-x); }
    return opdi_log_f64(OPDI_PI / fabs(x * opdi_sin_f64(OPDI_PI * (x - floor(x + 0.5))))) - opdi_lgamma_positive(-x);
}
/* Returns digamma(x) for x > 0.  For small x, uses digamma(x) = digamma(x + n) - sum_j 1 / (x + j) for j = 0 .. n - 1,
   where n is such that x + n >= 10.  The sum is kept as a quotient over / under.  For large x, uses the asymptotic
   series. */
OPDI_SHARED_LARGE double opdi_digamma_positive(double x) {
    double over = 0, under = 1;
    for (; x < 10; x += 1) {
        over = over * x + under;
        under *= x;
    }
    const double inverse = 1 / (x * x);
    return opdi_log_f64(x) - 0.5 / x - inverse * OPDI_POWERS(opdi_digamma_series, inverse) - over / under;
}
/* digamma: returns digamma(x).  Uses digamma(x) = digamma(1 - x) - pi / tan(pi x) for negative x. */
OPDI_INTERNAL double opdi_special_digamma(double x) {
    if (x == 0) { return copysign(1.0, x) < 0 ? OPDI_INF : -OPDI_INF; }
    if (!(x < 0)) { return opdi_digamma_positive(x); }
    return x == floor(x) ? NAN : opdi_digamma_positive(1 - x) - OPDI_PI / opdi_tan_f64(OPDI_PI * (x - floor(x + 0.5)));
}
/* Returns sum_k (q + k)^-s for q > 0 and s > 1: adds some terms, and estimates the remaining sum by the
   Euler-Maclaurin formula. */
OPDI_SHARED_LARGE double opdi_zeta_positive(double s, double q) {
    double sum = 0, term = opdi_pow_f64(q, -s), square = q * q, factor = s;
    if (isinf(q)) { return 0; }
    for (; q < 10 || q < s; term = opdi_pow_f64(q, -s)) {
        sum += term;
        if (term <= sum * 1e-17) { return sum; }
        q += 1;
    }
    sum += term * (q / (s - 1) + 0.5);
    square = q * q;
    term /= q;
    for (int k = 0; k < 12; k++) {
        const double more = opdi_zeta_series[k] * factor * term;
        sum += more;
        if (fabs(more) <= fabs(sum) * 1e-17) { break; }
        factor *= (s + 2 * k + 1) * (s + 2 * k + 2);
        term /= square;
    }
    return sum;
}
/* special_zeta: returns sum_k (q + k)^-s.  For a negative q that is not an integer, the sum includes the terms with
   q + k below 0. */
OPDI_INTERNAL double opdi_special_zeta(double s, double q) {
    if (isnan(q) || !(s >= 1)) { return NAN; }
    if (s == 1 || (q <= 0 && q == floor(q))) { return OPDI_INF; }
    if (q > 0) { return opdi_zeta_positive(s, q); }
    if (s != floor(s) || isinf(s)) { return isinf(s) ? OPDI_INF : NAN; }
    /* adds the sums of both sides first, as they cancel for odd s if q is halfway between two integers */
    const double above = opdi_zeta_positive(s, q - floor(q)), below = opdi_zeta_positive(s, ceil(q) - q);
    const double beyond = opdi_zeta_positive(s, 1 - q);
    return fmod(s, 2.0) == 0 ? (above + below) - beyond : (above - below) + beyond;
}
/* polygamma: returns (-1)^(n + 1) n! zeta(n + 1, x), or digamma(x) if n is 0. */
OPDI_INTERNAL double opdi_special_polygamma(double n, double x) {
    double product = n == 0 || fmod(n, 2.0) == 1 ? 1 : -1;
    if (n == 0) { return opdi_special_digamma(x); }
    for (int k = 2; k <= n && k <= 171; k++) { product *= k; }
    return product * opdi_special_zeta(n + 1, x);
}

//== the incomplete gamma function =====================================================================================

/* Returns log(1 + x) - x, computed so that no digits are lost for a small x, where both terms are nearly equal. */
OPDI_SHARED_LARGE double opdi_log1p_less(double x) {
    const double r = x / (2 + x), square = r * r;
    double power = r * square, sum = 0;
    if (fabs(x) > 0.5) { return opdi_log1p_f64(x) - x; }
    for (int k = 3; k < 40; k += 2) {
        sum += power / k;
        power *= square;
    }
    return 2 * sum - r * x;
}
/* Returns x^a exp(-x) / gamma(a + 1). */
OPDI_SHARED_LARGE double opdi_gamma_prefactor(double a, double x) {
    if (a < 10) { return opdi_exp_f64(a * opdi_log_f64(x) - x - opdi_lgamma_positive(a + 1)); }
    const double away = (x - a) / a, less = fabs(away) < 0.7 ? opdi_log1p_less(away) : opdi_log_f64(x / a) - away;
    return opdi_exp_f64(a * less - OPDI_POWERS(opdi_stirling, 1 / (a * a)) / a) / sqrt(2 * OPDI_PI * a);
}
/* Returns P(a, x), the regularized lower incomplete gamma function, as x^a exp(-x) / gamma(a + 1) sum_n x^n / ((a +
   1) ... (a + n)). */
OPDI_SHARED_TEXT double opdi_gamma_series(double a, double x) {
    double sum = 1, term = 1;
    for (int n = 1; n < 2000 && term > sum * 1e-17; n++) {
        term *= x / (a + n);
        sum += term;
    }
    return sum * opdi_gamma_prefactor(a, x);
}
/* Returns Q(a, x) = 1 - P(a, x) for small a and x, where Q is nearly 1, as 1 - x^a / gamma(a + 1) (1 + a sum_n
   (-x)^n / (n! (a + n))). */
OPDI_SHARED_TEXT double opdi_gamma_small(double a, double x) {
    const double power = a * opdi_log_f64(x) - opdi_lgamma_positive(a + 1);
    double sum = 0, term = 1;
    for (int n = 1; n < 40; n++) {
        term *= -x / n;
        sum += term / (a + n);
    }
    return -opdi_expm1_f64(power) - opdi_exp_f64(power) * a * sum;
}
/* Returns Q(a, x) = 1 - P(a, x) as a continued fraction, by Lentz's method. */
OPDI_SHARED_TEXT double opdi_gamma_fraction(double a, double x) {
    double below = x + 1 - a, over = 1e300, under = 1 / below, value = under;
    for (int n = 1; n < 2000; n++) {
        const double part = -n * (n - a);
        below += 2;
        under = part * under + below;
        over = below + part / over;
        under = 1 / (fabs(under) < 1e-300 ? 1e-300 : under);
        over = fabs(over) < 1e-300 ? 1e-300 : over;
        value *= under * over;
        if (fabs(under * over - 1) < 1e-16) { break; }
    }
    return value * opdi_gamma_prefactor(a, x) * a;
}
/* Returns Q(a, x) if `upper` is true, else P(a, x), for large a.  x is a (1 + mu), and `half` is eta^2 / 2 = mu -
   log(1 + mu).  Uses Temme's expansion erfc(eta sqrt(a / 2)) / 2 + exp(-a eta^2 / 2) / sqrt(2 pi a) sum_k c_k(eta) /
   a^k. */
OPDI_SHARED_LARGE double opdi_gamma_large(double a, double half, double eta, bool upper) {
    static const double *const tables[7] = {opdi_gamma_large_0, opdi_gamma_large_1, opdi_gamma_large_2,
        opdi_gamma_large_3, opdi_gamma_large_4, opdi_gamma_large_5, opdi_gamma_large_6};
    double sum = 0;
    for (int k = 6; k >= 0; k--) { sum = sum / a + opdi_powers(tables[k], 22 - 3 * k, eta); }
    sum *= opdi_exp_f64(-a * half) / sqrt(2 * OPDI_PI * a);
    return upper ? 0.5 * opdi_erfc_f64(eta * sqrt(a / 2)) + sum : 0.5 * opdi_erfc_f64(-eta * sqrt(a / 2)) - sum;
}
/* Returns the regularized incomplete gamma function: Q(a, x) if `upper` is true, else P(a, x). */
OPDI_SHARED_TEXT double opdi_gamma_part(double a, double x, bool upper) {
    const double none = upper ? 0 : 1, all = 1 - none;
    if (isnan(a) || isnan(x) || x < 0 || a < 0 || (a == 0 && x == 0) || (isinf(a) && isinf(x))) { return NAN; }
    if (a == 0 || isinf(x)) { return none; }
    if (x == 0 || isinf(a)) { return all; }
    const double away = (x - a) / a;
    if (a > 200 && away > -0.5 && away < 0.8) {
        const double half = -opdi_log1p_less(away), eta = sqrt(2 * half);
        return opdi_gamma_large(a, half, away < 0 ? -eta : eta, upper);
    }
    if (upper && x <= 1.5 && a <= 1.5) { return opdi_gamma_small(a, x); }
    if (x < a + 1 || x <= 1.5) {
        const double series = fmin(opdi_gamma_series(a, x), 1.0);
        return upper ? 1 - series : series;
    }
    return upper ? opdi_gamma_fraction(a, x) : 1 - opdi_gamma_fraction(a, x);
}
OPDI_INTERNAL double opdi_special_igamma(double a, double x) { return opdi_gamma_part(a, x, false); }
OPDI_INTERNAL double opdi_special_igammac(double a, double x) { return opdi_gamma_part(a, x, true); }

//== the error function and the normal distribution ====================================================================

/* Returns erfinv(y) / y for rest = 1 - y^2. */
OPDI_SHARED_TEXT double opdi_erfinv_of(double rest) {
    const double w = -opdi_log_f64(rest), root = sqrt(w);
    if (w < 6.25) { return OPDI_POWERS(opdi_erfinv_middle, w / 3.125 - 1); }
    return root < 5 ? OPDI_POWERS(opdi_erfinv_tail, (root - 3.75) / 1.25)
        : OPDI_POWERS(opdi_erfinv_far, (root - 16.25) / 11.25);
}
OPDI_INTERNAL double opdi_special_erfinv(double y) {
    const double size = fabs(y);
    if (!(size < 1)) { return size == 1 ? y * OPDI_INF : NAN; }
    return y * opdi_erfinv_of((1 - size) * (1 + size));
}
/* ndtri: returns the number below which a normal variable lies with probability p, sqrt(2) erfinv(2 p - 1). */
OPDI_INTERNAL double opdi_special_ndtri(double p) {
    if (p == 0 || p == 1) { return p == 0 ? -OPDI_INF : OPDI_INF; }
    if (!(p > 0 && p < 1)) { return NAN; }
    return (2 * p - 1) * opdi_erfinv_of(4 * p * (1 - p)) * 1.4142135623730951;
}
/* Returns exp(x^2).  The exponent is computed in two parts, without rounding errors of x^2. */
OPDI_SHARED_TEXT double opdi_exp_square(double x) {
    const double rough = (double)(float)x;
    return opdi_exp_f64(rough * rough) * opdi_exp_f64((x - rough) * (x + rough));
}
/* erfcx: returns exp(x^2) erfc(x).  For x >= 0, uses a polynomial in (x - 3.75) / (x + 3.75), divided by 1 + 2 x. */
OPDI_INTERNAL double opdi_special_erfcx(double x) {
    const double size = fabs(x);
    if (x < -27) { return OPDI_INF; }
    if (!(size < 1e150)) { return 0.56418958354775628695 / size; }
    const double value = OPDI_POWERS(opdi_erfcx_scaled, (size - 3.75) / (size + 3.75)) / (1 + 2 * size);
    return x < 0 ? 2 * opdi_exp_square(x) - value : value;
}
OPDI_INTERNAL double opdi_special_log_ndtr(double x) {
    const double root = x * 0.70710678118654752440;
    return x < -1 ? opdi_log_f64(opdi_special_erfcx(-root) / 2) - root * root
        : opdi_log1p_f64(-opdi_erfc_f64(root) / 2);
}
/* entr: returns -x log(x). */
OPDI_INTERNAL double opdi_special_entr(double x) {
    if (isnan(x)) { return x; }
    return x > 0 ? -x * opdi_log_f64(x) : x == 0 ? 0 : -OPDI_INF;
}
/* xlog1py: returns x log(1 + y), or 0 if x is 0. */
OPDI_INTERNAL double opdi_special_xlog1py(double x, double y) {
    if (isnan(y)) { return y; }
    return x == 0 ? 0 : x * opdi_log1p_f64(y);
}

//== Bessel functions ==================================================================================================
//  Up to 8, series and tables are used.  Beyond 8, tables in 1 / x give the functions divided by their main factor:
//  exp(x) / sqrt(x) for I, and the wave cos(x + c) / sqrt(x) for J and Y.

OPDI_INTERNAL double opdi_special_i0e(double x) {
    const double size = fabs(x);
    if (size <= 8) { return opdi_exp_f64(-size) * OPDI_POWERS(opdi_i0_series, x * x / 64); }
    return OPDI_POWERS(opdi_i0_large, 16 / size - 1) / sqrt(size);
}
OPDI_INTERNAL double opdi_special_i0(double x) {
    const double size = fabs(x), root = opdi_exp_f64(size / 2);
    if (size <= 8) { return OPDI_POWERS(opdi_i0_series, x * x / 64); }
    return root * (OPDI_POWERS(opdi_i0_large, 16 / size - 1) / sqrt(size)) * root;
}
OPDI_INTERNAL double opdi_special_i1e(double x) {
    const double size = fabs(x);
    if (size <= 8) { return opdi_exp_f64(-size) * (x / 2) * OPDI_POWERS(opdi_i1_series, x * x / 64); }
    return copysign(OPDI_POWERS(opdi_i1_large, 16 / size - 1) / sqrt(size), x);
}
OPDI_INTERNAL double opdi_special_i1(double x) {
    const double size = fabs(x), root = opdi_exp_f64(size / 2);
    if (size <= 8) { return x / 2 * OPDI_POWERS(opdi_i1_series, x * x / 64); }
    return copysign(root * (OPDI_POWERS(opdi_i1_large, 16 / size - 1) / sqrt(size)) * root, x);
}
/* Returns log(x / 2), even for the smallest numbers x, whose half is rounded to 0. */
OPDI_SHARED_TEXT double opdi_log_half(double x) {
    return x < 1e-290 ? opdi_log_f64(x) - 0.69314718055994531 : opdi_log_f64(x / 2);
}
OPDI_INTERNAL double opdi_special_scaled_k0(double x) {
    if (!(x > 0)) { return x == 0 ? OPDI_INF : NAN; }
    if (x > 2) { return OPDI_POWERS(opdi_k0_large, 4 / x - 1) / sqrt(x); }
    return opdi_exp_f64(x) * (OPDI_POWERS(opdi_k0_small, x * x / 2 - 1) - opdi_log_half(x) * opdi_special_i0(x));
}
OPDI_INTERNAL double opdi_special_k0(double x) {
    return x > 2 ? opdi_exp_f64(-x) * opdi_special_scaled_k0(x) : opdi_special_scaled_k0(x) / opdi_exp_f64(x);
}
OPDI_INTERNAL double opdi_special_scaled_k1(double x) {
    if (!(x > 0)) { return x == 0 ? OPDI_INF : NAN; }
    if (x > 2) { return OPDI_POWERS(opdi_k1_large, 4 / x - 1) / sqrt(x); }
    return opdi_exp_f64(x) * (OPDI_POWERS(opdi_k1_small, x * x / 2 - 1) / x + opdi_log_half(x) * opdi_special_i1(x));
}
OPDI_INTERNAL double opdi_special_k1(double x) {
    return x > 2 ? opdi_exp_f64(-x) * opdi_special_scaled_k1(x) : opdi_special_scaled_k1(x) / opdi_exp_f64(x);
}
/* Returns J0(x) if `first` is true, else Y0(x), for x > 8.  With w = x - pi / 4, these are sqrt(2 / (pi x)) (P
   cos(w) - Q sin(w)) and sqrt(2 / (pi x)) (P sin(w) + Q cos(w)). */
OPDI_SHARED_LARGE double opdi_hankel_0(double x, bool first) {
    const double part = 8 / x, at = 2 * part * part - 1, sine = opdi_sin_f64(x), cosine = opdi_cos_f64(x);
    const double p = OPDI_POWERS(opdi_p0_large, at), q = part * OPDI_POWERS(opdi_q0_large, at);
    const double wave = first ? p * (cosine + sine) - q * (sine - cosine) : p * (sine - cosine) + q * (cosine + sine);
    return wave * 0.56418958354775628695 / sqrt(x);
}
/* Returns J1(x) if `first` is true, else Y1(x), for x > 8, in the way of opdi_hankel_0, with w = x - 3 pi / 4. */
OPDI_SHARED_LARGE double opdi_hankel_1(double x, bool first) {
    const double part = 8 / x, at = 2 * part * part - 1, sine = opdi_sin_f64(x), cosine = opdi_cos_f64(x);
    const double p = OPDI_POWERS(opdi_p1_large, at), q = part * OPDI_POWERS(opdi_q1_large, at);
    const double wave = first ? p * (sine - cosine) + q * (sine + cosine) : q * (sine - cosine) - p * (sine + cosine);
    return wave * 0.56418958354775628695 / sqrt(x);
}
/* j0: returns the Bessel function J0(x).  Up to 8, a table gives J0(x) divided by the factors for its two zeros, which
   opdi_j0_zeros computes. */
OPDI_INTERNAL double opdi_special_j0(double x) {
    const double square = x * x;
    if (fabs(x) > 8) { return opdi_hankel_0(fabs(x), true); }
    if (fabs(x) < 1e-5) { return 1 - square / 4; }
    return opdi_j0_zeros(fabs(x)) * OPDI_POWERS(opdi_j0_small, square / 32 - 1);
}
OPDI_INTERNAL double opdi_special_j1(double x) {
    const double square = x * x;
    if (fabs(x) > 8) { return x < 0 ? -opdi_hankel_1(-x, true) : opdi_hankel_1(x, true); }
    if (fabs(x) < 1e-8) { return x / 2; }
    return x * opdi_j1_zeros(fabs(x)) * OPDI_POWERS(opdi_j1_small, square / 32 - 1);
}
#define OPDI_Y0_LOG 0.11593151565841245                 /* -gamma + log(2) */
OPDI_INTERNAL double opdi_special_y0(double x) {
    if (!(x > 0)) { return x == 0 ? -OPDI_INF : NAN; }
    if (x > 8) { return opdi_hankel_0(x, false); }
    const double rest = opdi_y0_zero(x) * OPDI_POWERS(opdi_y0_small, x * x / 32 - 1);
    if (x < 1e-290) { return 2 / OPDI_PI * (opdi_log_f64(x) - OPDI_Y0_LOG); }
    const double of = x * OPDI_Y0_INVERSE, less = (fma(x, OPDI_Y0_INVERSE, -of) + x * 1.0518920173996795e-16) / of;
    return 2 / OPDI_PI * (opdi_log_f64(of) + less) * opdi_special_j0(x) + rest;
}
OPDI_INTERNAL double opdi_special_y1(double x) {
    if (!(x > 0)) { return x == 0 ? -OPDI_INF : NAN; }
    if (x > 8) { return opdi_hankel_1(x, false); }
    const double part = opdi_log_f64(x) * opdi_special_j1(x) - 1 / x;
    return 2 / OPDI_PI * part + x * OPDI_POWERS(opdi_y1_small, x * x / 32 - 1);
}
OPDI_INTERNAL double opdi_special_spherical_j0(double x) {
    if (isinf(x)) { return 0; }
    return fabs(x) < 1e-8 ? 1 : opdi_sin_f64(x) / x;
}
/* airy_ai: returns Ai(x), with zeta = 2/3 |x|^(3/2).  From -5 to 2, tables give the function.  Above 2, a table
   gives the function divided by exp(-zeta).  Below -5, tables give the factors of sin(zeta) and cos(zeta). */
OPDI_INTERNAL double opdi_special_airy_ai(double x) {
    const double size = fabs(x), root = sqrt(size), cube = size * root, zeta = 2 * cube / 3;
    if (isinf(x)) { return NAN; }
    if (x > 2) {
        if (x > 103.892) { return 0; }
        const double less = opdi_exp_f64(-zeta) * 0.28209479177387814 / sqrt(root);
        return OPDI_POWERS(opdi_airy_large, 3.7712361663282534 / zeta - 1) * less;
    }
    if (x >= -1.5) { return OPDI_POWERS(opdi_airy_middle, (x - 0.25) / 1.75); }
    if (x >= -5) { return OPDI_POWERS(opdi_airy_left, (x + 3.25) / 1.75); }
    /* the rounding errors of zeta: of the square root, of the product, of the division by 3 */
    const double rest = fma(size, root, -cube) + size * (fma(-root, root, size) / (2 * root));
    const double less = (fma(-3.0, zeta, 2 * cube) + 2 * rest) / 3;
    const double part = 7.4535599249992990 / zeta, at = 2 * part * part - 1;
    const double sin_of = opdi_sin_f64(zeta), cos_of = opdi_cos_f64(zeta);
    const double sin_less = opdi_sin_f64(less), cos_less = opdi_cos_f64(less);
    const double sine = sin_of * cos_less + cos_of * sin_less, cosine = cos_of * cos_less - sin_of * sin_less;
    const double p = OPDI_POWERS(opdi_airy_cosine, at), q = OPDI_POWERS(opdi_airy_sine, at) / zeta;
    return (p * (cosine + sine) + q * (sine - cosine)) * 0.39894228040143268 / sqrt(root);
}

//== orthogonal polynomials ============================================================================================
//
//  The degree n is truncated to an integer; negative degrees give 0.  As in PyTorch, a loop computes one degree after
//  another, except for Chebyshev polynomials of higher degree between -1 and 1, which are sines and cosines.  Results
//  that would need more than OPDI_DEGREES steps are NaN, as are Hermite polynomials of a degree above 512.

enum { OPDI_DEGREES = 1 << 20 };
/* Returns the degree n as an integer, or -1 if n is not a valid degree. */
OPDI_SHARED_TEXT int64_t opdi_degree(double n) { return n > -1 && n < 9e18 ? (int64_t)n : -1; }
/* Returns r[n] with r[k] = 2 x r[k - 1] - r[k - 2], r[0] = 1 and r[1] = first. */
OPDI_SHARED_TEXT double opdi_chebyshev_steps(double x, int64_t n, double first) {
    double last = 1, value = first;
    if (n <= 0) { return n < 0 ? 0 : 1; }
    if (n > OPDI_DEGREES) { return NAN; }
    for (int64_t k = 2; k <= n && !isnan(value); k++) {
        const double next = 2 * x * value - last;
        last = value;
        value = next;
    }
    return value;
}
/* Returns `value` if n is even or x is not negative, else -value. */
OPDI_SHARED_TEXT double opdi_by_parity(double value, double x, int64_t n) {
    return x < 0 && n % 2 != 0 ? -value : value;
}
OPDI_INTERNAL double opdi_special_chebyshev_t(double x, double degree) {
    const int64_t n = opdi_degree(degree);
    if (n >= 0 && fabs(x) == 1) { return opdi_by_parity(1, x, n); }
    return n > 6 && fabs(x) < 1 ? opdi_cos_f64((double)n * opdi_acos_f64(x)) : opdi_chebyshev_steps(x, n, x);
}
OPDI_INTERNAL double opdi_special_chebyshev_u(double x, double degree) {
    const int64_t n = opdi_degree(degree);
    if (n >= 0 && fabs(x) == 1) { return opdi_by_parity((double)n + 1, x, n); }
    if (n > 8 && fabs(x) < 1) { return opdi_sin_f64(((double)n + 1) * opdi_acos_f64(x)) / sqrt((1 - x) * (1 + x)); }
    return opdi_chebyshev_steps(x, n, 2 * x);
}
OPDI_INTERNAL double opdi_special_chebyshev_v(double x, double degree) {
    const int64_t n = opdi_degree(degree);
    if (n >= 0 && fabs(x) == 1) { return x > 0 ? 1 : opdi_by_parity(2 * (double)n + 1, x, n); }
    if (n > 8 && fabs(x) < 1) { return opdi_cos_f64(((double)n + 0.5) * opdi_acos_f64(x)) / sqrt((1 + x) / 2); }
    return opdi_chebyshev_steps(x, n, 2 * x - 1);
}
OPDI_INTERNAL double opdi_special_chebyshev_w(double x, double degree) {
    const int64_t n = opdi_degree(degree);
    if (n >= 0 && fabs(x) == 1) { return x > 0 ? 2 * (double)n + 1 : opdi_by_parity(1, x, n); }
    if (n > 8 && fabs(x) < 1) { return opdi_sin_f64(((double)n + 0.5) * opdi_acos_f64(x)) / sqrt((1 - x) / 2); }
    return opdi_chebyshev_steps(x, n, 2 * x + 1);
}
OPDI_INTERNAL double opdi_special_shifted_t(double x, double n) { return opdi_special_chebyshev_t(2 * x - 1, n); }
OPDI_INTERNAL double opdi_special_shifted_u(double x, double n) { return opdi_special_chebyshev_u(2 * x - 1, n); }
OPDI_INTERNAL double opdi_special_shifted_v(double x, double n) { return opdi_special_chebyshev_v(2 * x - 1, n); }
OPDI_INTERNAL double opdi_special_shifted_w(double x, double n) { return opdi_special_chebyshev_w(2 * x - 1, n); }
/* Returns r[n] with r[k + 1] = scale (x r[k] - k r[k - 1]) and r[0] = 1.  `scale` is 2 (physicists' polynomials) or
   1 (statisticians'). */
OPDI_SHARED_TEXT double opdi_hermite(double x, int64_t n, double scale) {
    double last = 1, value = scale * x;
    if (n <= 0) { return n < 0 ? 0 : 1; }
    if (n > 512) { return NAN; }
    for (int64_t k = 1; k < n; k++) {
        const double next = scale * (x * value - (double)k * last);
        last = value;
        value = next;
    }
    return value;
}
OPDI_INTERNAL double opdi_special_hermite_h(double x, double n) { return opdi_hermite(x, opdi_degree(n), 2); }
OPDI_INTERNAL double opdi_special_hermite_he(double x, double n) { return opdi_hermite(x, opdi_degree(n), 1); }
/* Returns the Laguerre polynomial r[n] of degree n at x, where (k + 1) r[k + 1] = (2 k + 1 - x) r[k] - k r[k - 1]. */
OPDI_INTERNAL double opdi_special_laguerre_l(double x, double degree) {
    const int64_t n = opdi_degree(degree);
    double last = 1, value = 1 - x;
    if (n <= 0 || x == 0) { return n < 0 ? 0 : 1; }
    if (n > OPDI_DEGREES) { return NAN; }
    for (int64_t k = 1; k < n && !isnan(value); k++) {
        const double next = ((double)(2 * k + 1) - x) * value - (double)k * last;
        last = value;
        value = next / (double)(k + 1);
    }
    return value;
}
/* Returns the Legendre polynomial r[n] of degree n at x, where (k + 1) r[k + 1] = (2 k + 1) x r[k] - k r[k - 1]. */
OPDI_INTERNAL double opdi_special_legendre_p(double x, double degree) {
    const int64_t n = opdi_degree(degree);
    double last = 1, value = x;
    if (n <= 0) { return n < 0 ? 0 : 1; }
    if (fabs(x) == 1) { return opdi_by_parity(1, x, n); }
    if (n > OPDI_DEGREES) { return NAN; }
    for (int64_t k = 1; k < n && !isnan(value); k++) {
        const double next = (double)(2 * k + 1) * x * value - (double)k * last;
        last = value;
        value = next / (double)(k + 1);
    }
    return value;
}
