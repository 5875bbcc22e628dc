//----------------------------------------------------------------------------------------------------------------------
//  >>api:op:distance   distances between rows
//----------------------------------------------------------------------------------------------------------------------

/* _cdist_forward: cdist */
OPD_API opd_tensor *opd_cdist_forward(opd_tensor *x1, opd_tensor *x2, double p, opd_value compute_mode);
/* _cdist_backward: derivative of cdist */
OPD_API opd_tensor *opd_cdist_backward(opd_tensor *grad, opd_tensor *x1, opd_tensor *x2, double p, opd_tensor *cdist);
/* _euclidean_dist: cdist of p = 2 by a matrix product */
OPD_API opd_tensor *opd_euclidean_dist(opd_tensor *x1, opd_tensor *x2);
/* cdist: p-norm distances between the rows of x1 and those of x2 */
OPD_API opd_tensor *opd_cdist(opd_tensor *x1, opd_tensor *x2);
OPD_API opd_tensor *opd_cdist_full(opd_tensor *x1, opd_tensor *x2, double p, opd_value compute_mode);
/* _pdist_forward: pdist */
OPD_API opd_tensor *opd_pdist_forward(opd_tensor *self);
OPD_API opd_tensor *opd_pdist_forward_full(opd_tensor *self, double p);
/* _pdist_backward: derivative of pdist */
OPD_API opd_tensor *opd_pdist_backward(opd_tensor *grad, opd_tensor *self, double p, opd_tensor *pdist);
/* pdist: p-norm distances between any two rows */
OPD_API opd_tensor *opd_pdist(opd_tensor *self);
OPD_API opd_tensor *opd_pdist_full(opd_tensor *self, double p);

