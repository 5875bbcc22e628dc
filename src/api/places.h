//----------------------------------------------------------------------------------------------------------------------
//  >>api:places     macros that pass the place of a call
//----------------------------------------------------------------------------------------------------------------------

#undef opd_keep
#undef opd_assign
#define opd_keep(...) opd_keep_at((__VA_ARGS__), OPDI_HERE)
#define opd_assign(...) opd_assign_at(__VA_ARGS__, OPDI_HERE)
